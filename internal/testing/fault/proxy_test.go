package fault_test

import (
	"bufio"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/fault"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
)

// TestMain fails when a goroutine is left behind (trap 33).
func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// The test has the faults that no user of a proxy would miss: it does not wait for them.
func TestFaultsThatNobodyWaitsFor(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	fatal.If(t, err)
	p := fault.Start(t, listener.Addr().String())
	t.Cleanup(func() { listener.Close() })
	dial := func() (client, server net.Conn) {
		client, err := net.Dial("tcp", p.Addr())
		fatal.If(t, err)
		if server, err = listener.Accept(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = client.Close(), server.Close() })
		return client, server
	}
	say := func(conn net.Conn, line string) {
		if _, err := io.WriteString(conn, line); err != nil {
			t.Fatal(err)
		}
	}
	hear := func(conn net.Conn, want string) {
		t.Helper()
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != want {
			t.Fatalf("heard %q, %v; want %q", line, err, want)
		}
	}
	const late = 300 * time.Millisecond
	client, server := dial()
	p.Trickle(true)
	p.Delay(late / 10)
	began := time.Now()
	say(server, "an answer\n")
	if hear(client, "an answer\n"); time.Since(began) < late/10 {
		t.Errorf("an answer after %v", time.Since(began))
	}
	p.Jitter("late", late)
	for range 40 { // one of three is late, even if its sender has gone
		client, server := dial()
		began = time.Now()
		say(client, "late\n")
		client.Close()
		if hear(server, "late\n"); time.Since(began) > late/10 {
			return
		}
	}
	t.Error("no request was late")
}
