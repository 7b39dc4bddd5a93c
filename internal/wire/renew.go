package wire

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/store"
)

// A connection that is younger is not renewed: while an address leads to a server that refuses,
// each refusal would make a new one. Some refusals are more likely to be about the server itself,
// which may be in that state for hours, and whose connections others may use to read.
const (
	renewEvery   = 100 * time.Millisecond
	renewInDoubt = 5 * time.Second
)

// renewWait is how long a request waits for a renewal of its connections at most. It never waits
// for more than half of its own time.
const renewWait = 250 * time.Millisecond

// A renewingStore is the store of an adapter that has its connections to a node renewed once one of
// them turned out to be of no use: it was silent, or it led to a server that is not the right one
// any more. A pool has more of them, and would give one after the other to the requests.
type renewingStore struct {
	store.Store
	found func(node string) // the right server answers again

	misled   atomic.Int32 // how many of the nodes are misled
	renewing atomic.Int32 // how many of the nodes are being renewed

	mu    sync.Mutex
	nodes map[string]*renewedNode
}

// A renewedNode is a node whose connections were renewed.
type renewedNode struct {
	at      time.Time     // when
	renewed chan struct{} // closed once it is
	misled  bool          // a connection led to a wrong server, and no request was answered since
}

// A connectionState is what replies say of their connection.
type connectionState int

const (
	useful connectionState = iota
	silent
	misled  // it leads to a server that others have replaced
	doubted // so it may be
)

// Do implements store.Store.
func (s *renewingStore) Do(ctx context.Context, node string, commands []store.Command) []store.Reply {
	s.await(ctx, node)
	sent := time.Now()
	replies := s.Store.Do(ctx, node, commands)
	if found := judge(replies); found != useful {
		s.renew(node, sent, found)
	} else if s.misled.Load() > 0 {
		s.answered(node, sent, replies)
	}
	return replies
}

// Listen implements store.Store.
func (s *renewingStore) Listen(ctx context.Context, node string, sharded bool,
	events store.Events) (store.Listener, error) {
	s.await(ctx, node)
	return s.Store.Listen(ctx, node, sharded, events)
}

// renew renews the connections to a node because of a request that was sent at a moment.
func (s *renewingStore) renew(node string, sent time.Time, because connectionState) {
	s.mu.Lock()
	n := s.nodes[node]
	if n == nil {
		n = &renewedNode{}
		s.nodes[node] = n
	}
	if because != silent && !n.misled {
		n.misled = true
		s.misled.Add(1)
	}
	least := renewEvery
	if because == doubted {
		least = renewInDoubt
	}
	due := !sent.Before(n.at.Add(least)) // otherwise its connection was an older one, or is too new
	if !due {
		s.mu.Unlock()
		return
	}
	renewed := make(chan struct{})
	n.at, n.renewed = time.Now(), renewed
	s.renewing.Add(1)
	s.mu.Unlock()
	go func() {
		s.Store.Renew(node)
		s.renewing.Add(-1)
		close(renewed)
	}()
}

// await waits for the renewal of a node's connections that is under way: a request would get an old
// one otherwise.
func (s *renewingStore) await(ctx context.Context, node string) {
	if s.renewing.Load() == 0 {
		return
	}
	s.mu.Lock()
	n := s.nodes[node]
	if n == nil {
		s.mu.Unlock()
		return
	}
	renewed := n.renewed
	s.mu.Unlock()
	most := renewWait
	if end, ok := ctx.Deadline(); ok {
		most = min(most, time.Until(end)/2)
	}
	late := protocol.NewTimer(most)
	defer late.Stop()
	select {
	case <-renewed:
	case <-ctx.Done():
	case <-late.C:
	}
}

// answered notes that requests to a node, which were sent at a moment, did not find their
// connection of no use.
func (s *renewingStore) answered(node string, sent time.Time, replies []store.Reply) {
	s.mu.Lock()
	n := s.nodes[node]
	found := n != nil && n.misled && sent.After(n.at) && len(replies) > 0 && replies[0].Err == nil &&
		replies[0].Refused == ""
	if found {
		n.misled = false
		s.misled.Add(-1)
	}
	s.mu.Unlock()
	if found {
		s.found(node)
	}
}

// judge returns what the replies to some commands say of the connection that carried them.
func judge(replies []store.Reply) (found connectionState) {
	for i := range replies {
		switch reply := &replies[i]; {
		case reply.Err != nil && !reply.Unsent && !errors.Is(reply.Err, context.Canceled):
			found = max(found, silent)
		case reply.Refused != "":
			found = max(found, judgeRefusal(reply.Refused))
		}
	}
	return found
}

// judgeRefusal returns what a refusal says of the connection. Behind an address that leads to a new
// master, connections to the former one may stay open. It has become a replica, or will do so: it
// loads the data of the new master then, and before that it may lack replicas.
func judgeRefusal(refused string) connectionState {
	switch reasonOf(refused) {
	case protocol.ReadOnly:
		return misled
	case protocol.Loading, protocol.NoReplicas:
		return doubted
	}
	return useful
}
