package redisserver_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// TestNoServerOutlivesItsStarter runs itself as a second process, which starts a server and is
// killed.
func TestNoServerOutlivesItsStarter(t *testing.T) {
	if os.Getenv("REDISSERVER_STARTER") != "" {
		srv, err := redisserver.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("listening", srv.Addr())
		select {}
	}
	if os.Getenv("HOLDFAST_PROOF") != "1" {
		t.Skip("it kills a server: only with HOLDFAST_PROOF=1")
	}
	starter := exec.Command(os.Args[0], "-test.run=^TestNoServerOutlivesItsStarter$")
	starter.Env = append(os.Environ(), "REDISSERVER_STARTER=1")
	out, err := starter.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := starter.Start(); err != nil {
		t.Fatal(err)
	}
	addr := ""
	_, err = fmt.Fscanf(out, "listening %s\n", &addr)
	_ = starter.Process.Kill()
	_ = starter.Wait()
	if err != nil {
		t.Fatal("the starter did not say where its server listens: ", err)
	}
	deadline := time.After(10 * time.Second)
	for {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return
		}
		conn.Close()
		select {
		case <-deadline:
			t.Fatal("the server lives on")
		case <-time.After(5 * time.Millisecond):
		}
	}
}
