package workload

import (
	"net"
	"testing"
	"time"
)

func TestProxyIsSilentAndLosesNothing(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	p, err := newProxy(server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	client, err := net.Dial("tcp", p.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	end, err := server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = end.Close() }()

	begin := time.Now()
	p.silence(300 * time.Millisecond)
	p.silence(100 * time.Millisecond) // the longer counts
	if _, err := client.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 8)
	if n, err := end.Read(buf); err != nil || string(buf[:n]) != "x" {
		t.Errorf("read %q after the silence, error %v", buf[:n], err)
	}
	if took := time.Since(begin); took < 300*time.Millisecond {
		t.Errorf("the silence was over after %v", took)
	}
}
