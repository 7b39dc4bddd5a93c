package wire

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/store"
)

// A topologyStore answers questions about its topology one at a time, when the test says what.
type topologyStore struct {
	Store
	answers chan error

	mu    sync.Mutex
	asked int
}

func (d *topologyStore) Describe(ctx context.Context) (Topology, error) {
	d.mu.Lock()
	d.asked++
	d.mu.Unlock()
	select {
	case err := <-d.answers:
		half := Slots / 2
		return Topology{Cluster: true, Nodes: []Node{
			{ID: "low", Slots: []SlotRange{{From: -1, To: half - 1}}},
			{ID: "high", Slots: []SlotRange{{From: half, To: Slots}}},
		}}, err
	case <-ctx.Done():
		return Topology{}, ctx.Err()
	}
}

// One question serves all callers, and one that ends, or has little time, does not end it for the
// others.
func TestServersTopologyWhenOneCallerEnds(t *testing.T) {
	for want, patience := range map[error]time.Duration{
		context.Canceled: time.Second, context.DeadlineExceeded: 10 * time.Millisecond,
	} {
		synctest.Test(t, func(t *testing.T) {
			d := &topologyStore{answers: make(chan error)}
			s := NewServers(d)
			ctx, cancel := context.WithCancel(context.Background())
			ended, answered := make(chan error, 1), make(chan error, 1)
			go func() { _, err := s.Topology(ctx, time.Now().Add(patience)); ended <- err }()
			synctest.Wait()
			go func() { _, err := s.Topology(context.Background(), time.Now().Add(time.Second)); answered <- err }()
			<-time.After(500 * time.Millisecond)
			cancel()
			if err := <-ended; !errors.Is(err, want) {
				t.Errorf("the caller that ended got %v, want %v", err, want)
			}
			d.answers <- nil
			if err := <-answered; err != nil || d.asked != 1 {
				t.Errorf("the other got %v after %d questions", err, d.asked)
			}
			if low, high := s.Serving(0), s.Serving(Slots-1); low == high || s.Serving(1) != low || s.KnownSingle() {
				t.Error("the slots of two servers are not told apart")
			}
		})
	}
}

// A question that fails is asked again by the next caller.
func TestServersTopologyAfterFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &topologyStore{answers: make(chan error, 1)}
		s := NewServers(d)
		d.answers <- errors.New("refused")
		if _, err := s.Topology(t.Context(), time.Now().Add(time.Second)); err == nil {
			t.Error("no error")
		}
		if s.Serving(0) != s.Serving(Slots-1) {
			t.Error("slots were learned from an error")
		}
		if _, err := s.Topology(t.Context(), time.Now().Add(time.Second)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("no answer: %v", err)
		}
		synctest.Wait()
		d.answers <- nil
		if _, err := s.Topology(t.Context(), time.Now().Add(time.Second)); err != nil || d.asked != 3 {
			t.Errorf("%v after %d questions", err, d.asked)
		}
	})
}

// A doubt is looked into once a second at most. Without an answer it stays.
func TestServersDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &topologyStore{answers: make(chan error, 1)}
		s := NewServers(d)
		s.Doubt()
		if s.Doubted() {
			t.Error("doubted before it was known")
		}
		d.answers <- nil
		if _, err := s.Topology(t.Context(), time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		if s.Doubted() {
			t.Error("asked again at once")
		}
		<-time.After(doubtful)
		if !s.Doubted() || s.Doubted() {
			t.Error("a doubt is not taken away by the one that looks into it")
		}
		d.answers <- errors.New("refused")
		s.Refresh(time.Now().Add(time.Second))
		<-time.After(doubtful)
		if !s.Doubted() {
			t.Error("certain without an answer")
		}
	})
}

// A server says what it is, as far as it may. One that does not answer is described nowhere.
func TestDescribeSingle(t *testing.T) {
	const redis = "redis_version:6.2.1\r\nrole:master\r\nmaxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n"
	const valkey = "redis_version:7.2.4\r\nvalkey_version:9.0.1\r\nrole:slave\r\n" +
		"maxmemory:1\r\nmaxmemory_policy:allkeys-lru\r\n"
	for name, test := range map[string]struct {
		reply   store.Reply
		want    Node
		sharded bool
	}{
		"redis": {store.Reply{Value: redis}, Node{Version: "6.2.1", Role: "master"}, false},
		"valkey": {store.Reply{Value: valkey}, Node{Version: "9.0.1", Role: "replica", Eviction: "allkeys-lru"},
			true},
		"refused":   {store.Reply{Refused: "NOPERM no permissions to run the 'info' command"}, Node{}, false},
		"no answer": {store.Reply{Err: errNoNode}, Node{}, false},
	} {
		f := newFake()
		f.met = []string{"s:1"}
		f.answer = func(string, []store.Command) []store.Reply { return []store.Reply{test.reply} }
		got, err := Route(f).Describe(t.Context())
		if test.reply.Err != nil {
			if !errors.Is(err, test.reply.Err) {
				t.Errorf("%s: got %+v, %v", name, got, err)
			}
			continue
		}
		test.want.ID = "s:1"
		if err != nil || got.Cluster || got.ShardedPubSub != test.sharded ||
			!reflect.DeepEqual(got.Nodes, []Node{test.want}) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

// Of a cluster each node is described that serves slots. One that does not answer has no version.
func TestDescribeCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("a:1", "b:1")
		f.answer = func(node string, _ []store.Command) []store.Reply {
			if node == "b:1" {
				return []store.Reply{{Err: errNoNode}}
			}
			return []store.Reply{{Value: "redis_version:7.0.0\r\n"}}
		}
		got, err := Route(f).Describe(t.Context())
		half := Slots / 2
		want := Topology{Cluster: true, Nodes: []Node{
			{ID: "id-a:1", Role: "master", Version: "7.0.0", Slots: []SlotRange{{0, half - 1}}},
			{ID: "id-b:1", Role: "master", Slots: []SlotRange{{half, Slots - 1}}},
		}}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

// A cluster of a new version may lack sharded channels, and says so if it may be asked.
func TestDescribeClusterUnsharded(t *testing.T) {
	for name, test := range map[string]struct {
		reply   store.Reply
		sharded bool
	}{
		"known":   {store.Reply{Value: []any{[]any{"ssubscribe"}}}, true},
		"lacking": {store.Reply{Value: []any{nil}}, false},
		"refused": {store.Reply{Refused: "NOPERM no permissions to run the 'command|info' command"}, true},
	} {
		f := newFake("a:1", "b:1")
		f.answer = func(string, []store.Command) []store.Reply {
			return []store.Reply{{Value: "redis_version:7.0.0\r\n"}, test.reply}
		}
		if got, err := Route(f).Describe(t.Context()); err != nil || got.ShardedPubSub != test.sharded {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

func TestWarnings(t *testing.T) {
	topology := Topology{Nodes: []Node{
		{ID: "good", Version: "7.0.15", Eviction: "noeviction"},
		{ID: "silent"},
		{ID: "evicts", Version: "8.0.0", Eviction: "allkeys-lru"},
		{ID: "old", Version: "6.0.20"},
	}}
	if texts := Warnings(topology, true); len(texts) != 1 || !strings.Contains(texts[0], "server old") {
		t.Errorf("of a client whose keys are not evicted: got %q", texts)
	}
	texts := Warnings(topology, false)
	if all := strings.Join(texts, "\n"); len(texts) != 2 || !strings.Contains(all, "server evicts may evict") ||
		!strings.Contains(all, "server old is of version 6.0.20") {
		t.Errorf("got %q", texts)
	}
}
