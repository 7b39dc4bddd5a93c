package moving

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// startEtcd runs an etcd of one member until the test is over, and returns its address.
func startEtcd(t *testing.T) (addr string) {
	t.Helper()
	program, err := exec.LookPath("etcd")
	if err != nil {
		t.Fatalf("no etcd (Debian: etcd-server): %v", err)
	}
	client, peer := freeAddr(t), freeAddr(t)
	cmd := exec.Command(program, "--data-dir", t.TempDir(), "--log-level", "error", "--unsafe-no-fsync",
		"--listen-client-urls", "http://"+client, "--advertise-client-urls", "http://"+client,
		"--listen-peer-urls", "http://"+peer, "--initial-advertise-peer-urls", "http://"+peer,
		"--initial-cluster", "default=http://"+peer)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{client}})
	if err != nil {
		t.Fatal(err)
	}
	defer etcd.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		if _, err = etcd.Get(ctx, "is it there?"); err == nil {
			return client
		}
		select {
		case <-ctx.Done():
			t.Fatalf("etcd does not answer on %s: %v", client, err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// freeAddr returns an address of the loopback that is free now.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return fmt.Sprint(l.Addr())
}
