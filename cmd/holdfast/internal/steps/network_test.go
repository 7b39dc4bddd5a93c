package steps

import (
	"bufio"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// echo is a server that answers each line with the same line.
func echo(t *testing.T) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(conn, conn); conn.Close() }()
		}
	}()
	return l.Addr().String()
}

// A caller sends lines through a network and reads lines.
type caller struct {
	t *testing.T
	net.Conn
	lines *bufio.Reader
}

func call(t *testing.T, n *network) *caller {
	t.Helper()
	conn, err := net.Dial("tcp", n.addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	return &caller{t, conn, bufio.NewReader(conn)}
}

func (c *caller) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

func (c *caller) expect(line string) {
	c.t.Helper()
	if got, err := c.lines.ReadString('\n'); got != line+"\n" {
		c.t.Fatalf("got %q, %v, want %q", got, err, line)
	}
}

func start(t *testing.T) *network {
	t.Helper()
	n, err := newNetwork(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.close)
	return n
}

func TestNetworkHoldsOnceAndInOrder(t *testing.T) {
	for name, hold := range map[string]func(*network, string) *rule{
		"request": (*network).holdRequest, "answer": (*network).holdAnswer,
	} {
		t.Run(name, func(t *testing.T) {
			n := start(t)
			c, other := call(t, n), call(t, n)
			held := hold(n, "DEL")
			c.send("get")
			c.expect("get")
			c.send("del") // matches in any case
			<-held.seen
			other.send("del again")
			other.expect("del again")
			select {
			case <-held.passed:
				t.Error("it passed")
			default:
			}
			held.pass()
			c.expect("del")
		})
	}
}

func TestNetworkLosesAnAnswer(t *testing.T) {
	n := start(t)
	c := call(t, n)
	lost := n.loseAnswer("set")
	c.send("set")
	<-lost.seen
	if line, err := c.lines.ReadString('\n'); !errors.Is(err, io.EOF) {
		t.Errorf("got %q, %v", line, err)
	}
	again := call(t, n)
	again.send("set")
	again.expect("set")
}

func TestNetworkIsSilentAndSpeaks(t *testing.T) {
	n := start(t)
	c := call(t, n)
	c.send("before")
	c.expect("before")
	n.silence()
	c.send("meanwhile")
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	if line, err := c.lines.ReadString('\n'); err == nil {
		t.Errorf("got %q in the silence", line)
	}
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	n.speak()
	c.expect("meanwhile")
}

func TestNetworkLeadsToAnotherServer(t *testing.T) {
	n := start(t)
	c := call(t, n)
	c.send("first")
	c.expect("first")
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	n.lead(other.Addr().String())
	if _, err := c.lines.ReadString('\n'); err == nil {
		t.Error("the connection to the first server is still there")
	}
	call(t, n)
	conn, err := other.Accept()
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

// Data that is held back does not keep a network from its end.
func TestNetworkEndsWithAHeldRequest(t *testing.T) {
	n, err := newNetwork(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	held := n.holdRequest("del")
	c := call(t, n)
	c.send("del")
	<-held.seen
	n.silence()
	n.close()
}
