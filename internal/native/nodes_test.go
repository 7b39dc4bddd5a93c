package native

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// A skewed is a cluster of two nodes whose clocks are hours apart. It grants all, and notes the
// not-after of each ask.
type skewed struct {
	halved
	late map[string]time.Duration // node -> not-after less its clock
}

func (s *skewed) now(node string) time.Time {
	if node == "high" {
		return time.Now().Add(5 * time.Hour)
	}
	return time.Now()
}

func (s *skewed) Do(_ context.Context, requests []wire.Request) []wire.Reply {
	replies := make([]wire.Reply, len(requests))
	for i, r := range requests {
		node := s.node(r.Key)
		now := s.now(node)
		if r.Args[0] == "TIME" {
			replies[i] = wire.Reply{Value: []any{strconv.FormatInt(now.Unix(), 10), "0"}}
			continue
		}
		notAfter, _ := wire.Number(r.Args[10].(string))
		s.late[node] = time.UnixMicro(notAfter).Sub(now)
		replies[i] = wire.Reply{Value: "H" + wire.Digits16(now.UnixMicro()) + "1|" + wire.Digits16(now.UnixMicro())}
	}
	return replies
}

// On a cluster each node has a clock of its own, by which requests to it are late.
func TestNodesHaveTheirOwnClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &skewed{halved: halved{flushes: map[string]int{}, names: map[string]int{}},
			late: map[string]time.Duration{}}
		p := New(server, Config{Prefix: "p", Process: "x", Timeout: time.Second})
		ask := func(name string) error {
			_, err := p.Bind(specOf(name)).Ask(context.Background(), protocol.Ask{
				Ticket: protocol.Ticket{ID: protocol.ID(strings.Repeat("x", 22)), Block: 1}, TTL: time.Minute,
				Deadline: time.Now().Add(time.Second)})
			return err
		}
		names := map[string]string{}
		for _, name := range []string{"a", "b", "c", "d"} {
			names[server.node("{"+name+"}")] = name
		}
		for range 3 {
			for node, name := range names {
				if err := ask(name); err != nil {
					t.Fatalf("%s: %v", node, err)
				}
				if late := server.late[node]; late <= 0 || late > 2*time.Second {
					t.Errorf("a request to %s may take effect until %v from now", node, late)
				}
			}
		}
	})
}

func specOf(name string) protocol.Spec { return protocol.Spec{Name: name, Kind: protocol.Mutex} }
