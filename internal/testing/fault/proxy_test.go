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

// A peer is a client of a proxy to an echo.
type peer struct {
	net.Conn
	t   *testing.T
	rd  *bufio.Reader
	got chan string // by the echo
}

func dial(t *testing.T, p *fault.Proxy, got chan string) *peer {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &peer{conn, t, bufio.NewReader(conn), got}
}

func (c *peer) say(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		c.t.Fatal(err)
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
	return line[:len(line)-1]
}

// echoes fails unless a line comes back.
func (c *peer) echoes(line string) {
	c.t.Helper()
	if c.say(line); c.hear(long) != line {
		c.t.Fatalf("%q does not come back", line)
	}
}

const (
	long  = 10 * time.Second
	short = 30 * time.Millisecond
)

func TestFaults(t *testing.T) {
	for name, test := range map[string]func(t *testing.T, p *fault.Proxy, c *peer){
		"answer lost": func(t *testing.T, p *fault.Proxy, c *peer) {
			lost := p.DropAnswer("two")
			c.echoes("one")
			c.say("two")
			<-lost
			if s := c.hear(long); s == "" || s == "two" || <-c.got != "one\n" || <-c.got != "two\n" {
				t.Fatalf("heard %q", s)
			}
		},
		"message swallowed": func(_ *testing.T, p *fault.Proxy, c *peer) {
			lost := p.SwallowAnswer("two")
			c.say("two")
			<-lost
			c.echoes("three")
		},
		"request held, sender gone": func(t *testing.T, p *fault.Proxy, c *peer) {
			held := p.HoldRequest("late")
			c.say("late")
			<-held.Arrived()
			_ = c.Close()
			if len(c.got) != 0 {
				t.Fatal("it came through")
			}
			held.Pass()
			<-c.got
		},
		"silence": func(t *testing.T, p *fault.Proxy, c *peer) {
			p.Silence()
			p.Silence()
			p.Speak() // the other silence lasts
			c.say("one")
			if s := c.hear(short); s != "" {
				t.Fatal(s)
			}
			p.Speak()
			if s := c.hear(long); s != "one" {
				t.Fatal(s)
			}
		},
		"silence, sender gone": func(_ *testing.T, p *fault.Proxy, c *peer) {
			p.Silence()
			c.say("late")
			_ = c.Close()
			p.Speak()
			<-c.got
		},
		"disarmed": func(_ *testing.T, p *fault.Proxy, c *peer) {
			p.DropAnswer("two")
			p.Disarm()
			c.echoes("two")
		},
		"late and out of order": func(t *testing.T, p *fault.Proxy, c *peer) {
			p.Jitter("late", 10*short)
			for range 40 { // one of three is late
				dial(t, p, c.got).say("late")
				dial(t, p, c.got).say("soon")
				if one, two := <-c.got, <-c.got; one == "soon\n" && two == "late\n" {
					return
				}
			}
			t.Fatal("all came in order")
		},
		"byte by byte": func(_ *testing.T, p *fault.Proxy, c *peer) {
			p.Trickle(true)
			c.echoes("one byte after the other")
		},
		"cut, delay, record": func(t *testing.T, p *fault.Proxy, c *peer) {
			c.echoes("one")
			p.Cut()
			if s := c.hear(long); s == "" {
				t.Fatal("not cut")
			}
			p.Record()
			p.Delay(short)
			began := time.Now()
			dial(t, p, c.got).echoes("two")
			if time.Since(began) < short || len(p.Sent("w")) != 1 {
				t.Fatal(p.Sent(""), time.Since(began))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			addr, got := echo(t)
			p := fault.Start(t, addr)
			test(t, p, dial(t, p, got))
		})
	}
}
