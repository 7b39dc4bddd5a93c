package fault_test

import (
	"bufio"
	"io"
	"net"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/fault"
)

// echo returns a server that answers each line with itself, and tells what it got.
func echo(t *testing.T) (addr string, got chan string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	got = make(chan string, 100)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for rd := bufio.NewReader(conn); ; {
					line, err := rd.ReadString('\n')
					if err != nil {
						return
					}
					got <- line
					_, _ = io.WriteString(conn, line)
				}
			}()
		}
	}()
	return listener.Addr().String(), got
}

type peer struct {
	net.Conn
	rd *bufio.Reader
}

func dial(t *testing.T, p *fault.Proxy) *peer {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &peer{conn, bufio.NewReader(conn)}
}

func (c *peer) say(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

// hear returns the next line, or "" when none comes within d, or the error of the connection.
func (c *peer) hear(d time.Duration) string {
	_ = c.SetReadDeadline(time.Now().Add(d))
	line, err := c.rd.ReadString('\n')
	if e, ok := err.(net.Error); ok && e.Timeout() {
		return ""
	} else if err != nil {
		return err.Error()
	}
	return line
}

const (
	long  = 10 * time.Second
	short = 30 * time.Millisecond
)

func TestFaults(t *testing.T) {
	t.Run("answer lost", func(t *testing.T) {
		addr, got := echo(t)
		p := fault.Start(t, addr)
		lost := p.DropAnswer("two")
		c := dial(t, p)
		c.say(t, "one")
		if s := c.hear(long); s != "one\n" {
			t.Fatal(s)
		}
		c.say(t, "two")
		<-lost
		if s := c.hear(long); s == "" || s == "two\n" || <-got != "one\n" || <-got != "two\n" {
			t.Fatalf("heard %q", s)
		}
	})
	t.Run("answer held", func(t *testing.T) {
		addr, got := echo(t)
		p := fault.Start(t, addr)
		held := p.HoldAnswer("two")
		c := dial(t, p)
		c.say(t, "two")
		<-held.Arrived()
		if s := c.hear(short); s != "" || <-got != "two\n" {
			t.Fatalf("heard %q", s)
		}
		held.Pass()
		if s := c.hear(long); s != "two\n" {
			t.Fatal(s)
		}
	})
	t.Run("message swallowed", func(t *testing.T) {
		addr, _ := echo(t)
		p := fault.Start(t, addr)
		lost := p.SwallowAnswer("two")
		c := dial(t, p)
		c.say(t, "two")
		<-lost
		c.say(t, "three")
		if s := c.hear(long); s != "three\n" {
			t.Fatal(s)
		}
	})
	t.Run("request held, sender gone", func(t *testing.T) {
		addr, got := echo(t)
		p := fault.Start(t, addr)
		held := p.HoldRequest("late")
		c := dial(t, p)
		c.say(t, "late")
		<-held.Arrived()
		_ = c.Close()
		if len(got) != 0 {
			t.Fatal("it came through")
		}
		held.Pass()
		if s := <-got; s != "late\n" {
			t.Fatal(s)
		}
	})
	t.Run("silence", func(t *testing.T) {
		addr, _ := echo(t)
		p := fault.Start(t, addr)
		c := dial(t, p)
		p.Silence()
		p.Silence()
		p.Speak() // the other silence lasts
		c.say(t, "one")
		if s := c.hear(short); s != "" {
			t.Fatal(s)
		}
		p.Speak()
		if s := c.hear(long); s != "one\n" {
			t.Fatal(s)
		}
	})
	t.Run("silence, sender gone", func(t *testing.T) {
		addr, got := echo(t)
		p := fault.Start(t, addr)
		c := dial(t, p)
		p.Silence()
		c.say(t, "late")
		_ = c.Close()
		p.Speak()
		if s := <-got; s != "late\n" {
			t.Fatal(s)
		}
	})
	t.Run("disarmed", func(t *testing.T) {
		addr, _ := echo(t)
		p := fault.Start(t, addr)
		p.DropAnswer("two")
		p.Disarm()
		c := dial(t, p)
		c.say(t, "two")
		if s := c.hear(long); s != "two\n" {
			t.Fatal(s)
		}
	})
	t.Run("late and out of order", func(t *testing.T) {
		addr, got := echo(t)
		p := fault.Start(t, addr)
		p.Jitter("late", 10*short)
		for range 40 { // one of three is late
			first, second := dial(t, p), dial(t, p)
			first.say(t, "late")
			second.say(t, "soon")
			one, two := <-got, <-got
			if one == "soon\n" && two == "late\n" {
				return
			}
		}
		t.Fatal("all came in order")
	})
	t.Run("byte by byte", func(t *testing.T) {
		addr, got := echo(t)
		p := fault.Start(t, addr)
		p.Trickle(true)
		c := dial(t, p)
		const text = "one byte after the other"
		c.say(t, text)
		if s := c.hear(long); s != text+"\n" || <-got != s {
			t.Fatalf("heard %q", s)
		}
	})
	t.Run("cut, delay, record", func(t *testing.T) {
		addr, _ := echo(t)
		p := fault.Start(t, addr)
		c := dial(t, p)
		c.say(t, "one")
		c.hear(long)
		p.Cut()
		if s := c.hear(long); s == "" {
			t.Fatal("not cut")
		}
		p.Record()
		p.Delay(short)
		c = dial(t, p)
		began := time.Now()
		c.say(t, "two")
		if s := c.hear(long); s != "two\n" || time.Since(began) < short || len(p.Sent("w")) != 1 {
			t.Fatal(s, time.Since(began))
		}
	})
}
