package native

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// A halved is a cluster of two nodes, with half of the slots each, that fills its answers with "1".
type halved struct {
	mu        sync.Mutex
	dead      string // answers no more, until the deadline
	forgetful bool   // knows no script by its digest
	flushes   map[string]int
	names     map[string]int
	described int
	mixed     bool
}

func (h *halved) node(key string) string {
	tag := key[strings.Index(key, "{")+1 : strings.Index(key, "}")]
	if wire.SlotOf(tag) < wire.Slots/2 {
		return "low"
	}
	return "high"
}

func (h *halved) Do(ctx context.Context, requests []wire.Request) []wire.Reply {
	replies := make([]wire.Reply, len(requests))
	node := h.node(requests[0].Key)
	for i, r := range requests {
		h.mu.Lock()
		h.mixed = h.mixed || h.node(r.Key) != node
		n := r.Args[2].(int)
		replies[i] = wire.Reply{Value: strings.Repeat("1", n)}
		if h.forgetful && r.Args[0] == "EVALSHA" {
			replies[i] = wire.Reply{Refused: "NOSCRIPT No matching script."}
		} else {
			h.names[node] += n
		}
		h.mu.Unlock()
	}
	h.mu.Lock()
	h.flushes[node]++
	dead := h.dead == node
	h.mu.Unlock()
	if dead {
		<-ctx.Done()
		for i := range replies {
			replies[i] = wire.Reply{Err: ctx.Err()}
		}
	}
	return replies
}

func (h *halved) Subscribe(context.Context, wire.Sink) (wire.Subscription, error) { return nil, nil }

func (h *halved) Describe(context.Context) (wire.Topology, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.described++
	return wire.Topology{Cluster: true, Nodes: []wire.Node{
		{ID: "low", Slots: []wire.SlotRange{{From: 0, To: wire.Slots/2 - 1}}}, {ID: "replica"},
		{ID: "high", Slots: []wire.SlotRange{{From: wire.Slots / 2, To: wire.Slots - 1}}}}}, nil
}

// watchdogs is a context that is never cancelled, as the watchdog's.
type watchdogs struct {
	context.Context
	deadline time.Time
}

func (w watchdogs) Deadline() (time.Time, bool) { return w.deadline, true }

func (w watchdogs) Done() <-chan struct{} { return nil }

// Trap 9: one node that does not answer stops the renewals of all the others.
func TestRenewByNode(t *testing.T) {
	const leases, timeout = 10_000, time.Second
	for name, test := range map[string]struct {
		dead      string
		forgetful bool
		late      map[string]bool
	}{
		"all answer":         {},
		"one does not":       {dead: "high", late: map[string]bool{"high": true}},
		"scripts not known":  {forgetful: true},
		"not known, and one": {dead: "low", forgetful: true, late: map[string]bool{"low": true}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &halved{dead: test.dead, forgetful: test.forgetful, flushes: map[string]int{},
					names: map[string]int{}}
				p := New(server, Config{Prefix: "holdfast", Process: "p", Timeout: timeout})
				renewals := make([]protocol.Renewal, leases)
				for i := range renewals {
					renewals[i] = protocol.Renewal{Resource: p.Bind(protocol.Spec{Name: fmt.Sprint(i),
						Kind: protocol.Mutex}), TTL: 10 * time.Second,
						Ticket: protocol.Ticket{ID: protocol.ID(strings.Repeat("x", 22)), Block: 1}}
				}
				for round := range 3 {
					began := time.Now()
					var mu sync.Mutex
					answered, right := 0, 0
					watched := watchdogs{t.Context(), began.Add(timeout)}
					p.Renew(watched, renewals, func(i int, r protocol.RenewalAnswer) {
						node := server.node(renewals[i].Resource.(*resource).keys.state.(string))
						took := time.Since(began)
						mu.Lock()
						defer mu.Unlock()
						answered++
						if late := test.late[node]; late == (r.Err != nil) && r.Held != late && (took == 0) == !late {
							right++
						}
					})
					if answered != leases || right != leases {
						t.Fatalf("round %d: %d answered, %d as they should", round, answered, right)
					}
				}
				if server.mixed {
					t.Error("nodes were mixed in one flush")
				}
				if want := 1 + min(len(test.late), 1)*2; server.described > want {
					t.Errorf("described %d times, at most %d are expected", server.described, want)
				} else if len(test.late) > 0 && server.described < 2 {
					t.Error("never looked again who serves what")
				}
			})
		})
	}
}

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

// A client that subscribes before its first request does so where the channels of its slots are.
func TestListenBeforeFirstRequest(t *testing.T) {
	server := &channels{}
	p := New(server, Config{Prefix: "p", Process: "x", Timeout: time.Second})
	listener, err := p.Listen(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	about := p.Bind(specOf("n"))
	if _, err := listener.Hear(t.Context(), about); err != nil {
		t.Fatal(err)
	}
	if want := p.channelFor(&about.(*resource).keys, "x"); len(server.added) != 1 || "s"+server.added[0] != want {
		t.Errorf("subscribed to %q, want %q", server.added, want)
	}
}

// A channels is a cluster with sharded channels, and the subscription there.
type channels struct {
	halved
	wire.Subscription
	added []string
}

func (c *channels) Describe(context.Context) (wire.Topology, error) {
	return wire.Topology{Cluster: true, ShardedPubSub: true}, nil
}

func (c *channels) Subscribe(context.Context, wire.Sink) (wire.Subscription, error) { return c, nil }

func (c *channels) Add(_ context.Context, name string) error {
	c.added = append(c.added, name)
	return nil
}
