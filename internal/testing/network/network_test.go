package network_test

import (
	"bufio"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/internal/testing/network"
)

// TestMain fails when a goroutine is left behind (trap 33).
func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// A server answers each line with itself, and remembers when it got which.
type server struct {
	began time.Time
	got   []string // guarded by the bubble: nobody looks while it writes
}

func (s *server) serve(conn net.Conn) error {
	go func() {
		defer conn.Close()
		for rd := bufio.NewReader(conn); ; {
			line, err := rd.ReadString('\n')
			if err != nil {
				return
			}
			s.got = append(s.got, strings.TrimSpace(line)+" "+time.Since(s.began).String())
			_, _ = conn.Write([]byte(line))
		}
	}()
	return nil
}

// TestNetwork: a client writes "one" at once and "two" a second later, and hears answers for a
// minute.
func TestNetwork(t *testing.T) {
	has := network.Contains("ONE")
	for _, c := range []struct {
		name    string
		latency time.Duration
		do      func(n *network.Network)
		got     string // by the server
		heard   string // by the client
	}{
		{"nothing", 0, func(*network.Network) {}, "one 0s, two 1s", "one 0s, two 1s"},
		{"latency", 5 * time.Millisecond, func(*network.Network) {}, "one 15ms, two 1.015s", "one 20ms, two 1.02s"},
		{"slow", 0, func(n *network.Network) { n.Slow(2 * time.Second) }, "one 2s, two 3s", "one 4s, two 5s"},
		{"lost", 0, func(n *network.Network) { n.Strike(network.Rule{Match: has, Times: 1}) }, "two 1s", "two 1s"},
		{"answer lost", 0, func(n *network.Network) {
			n.Strike(network.Rule{Way: network.Back, Match: has, Times: -1})
		}, "one 0s, two 1s", "two 1s"},
		{"late, and all behind it", 0, func(n *network.Network) {
			n.Strike(network.Rule{Match: has, Times: 1, Do: network.Delay, Late: 3 * time.Second})
		}, "one 3s, two 3s", "one 3s, two 3s"},
		{"again", 0, func(n *network.Network) {
			n.Strike(network.Rule{Match: has, Times: 1, Do: network.Repeat, Late: 3 * time.Second,
				Prefix: []byte("who\n")})
		}, "one 0s, two 1s, who 3s, one 3s", "one 0s, two 1s"},
		{"answer dropped", 0, func(n *network.Network) { n.DropAnswer("one") }, "one 0s, two 1s", ""},
		{"a rule that is over", 0, func(n *network.Network) { n.Strike(network.Rule{Match: has, Times: 1})() },
			"one 0s, two 1s", "one 0s, two 1s"},
		{"silent one way, for 5 s", 0, func(n *network.Network) {
			n.Silence(network.Back)
			time.AfterFunc(5*time.Second, func() { n.Speak(network.Back) })
		}, "one 0s, two 1s", "one 5s, two 5s"},
		{"two silences", 0, func(n *network.Network) {
			n.Pause()
			n.Silence(network.There)
			time.AfterFunc(5*time.Second, func() { n.Speak(network.There, network.Back) })
			time.AfterFunc(7*time.Second, func() { n.Speak(network.There) })
		}, "one 7s, two 7s", "one 7s, two 7s"},
		{"the host vanishes", 5 * time.Millisecond, (*network.Network).Vanish, "", ""},
		{"the process is killed", 0, (*network.Network).Kill, "", "connection reset by peer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{began: time.Now()}
				n := network.New(s.serve, network.Config{Latency: c.latency})
				defer n.Close()
				conn, err := n.Dial(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				c.do(n)
				_, _ = conn.Write([]byte("one\n"))
				time.AfterFunc(time.Second, func() { _, _ = conn.Write([]byte("two\n")) })
				var heard []string
				_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
				for rd := bufio.NewReader(conn); ; {
					line, err := rd.ReadString('\n')
					if ne, ok := err.(net.Error); ok && ne.Timeout() {
						break
					} else if err != nil {
						heard = append(heard, err.Error())
						break
					}
					heard = append(heard, strings.TrimSpace(line)+" "+time.Since(s.began).String())
				}
				synctest.Wait()
				if got := strings.Join(s.got, ", "); got != c.got {
					t.Errorf("the server got %q, want %q", got, c.got)
				}
				if got := strings.Join(heard, ", "); got != c.heard {
					t.Errorf("the client heard %q, want %q", got, c.heard)
				}
			})
		})
	}
}
