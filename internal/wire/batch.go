package wire

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

const (
	maxInFlight = 3   // batches under way at once
	fewRequests = 2   // requests under way beside which another may go; beside more, waiting for a batch is quicker for all
	minShare    = 8   // requests that are worth a batch of their own
	maxBatch    = 256 // requests in a batch

	// A caller that can be cancelled sends its own request only if the last answer is no older than
	// this. If the server answers, the caller learns of the end of its context one answer late. If
	// the server just ceased to answer, it learns of it one time-out late.
	responsive = time.Second
)

// A Batcher carries the requests of many goroutines to one server. While few are under way, each
// goes at once and alone. Requests that come while more are under way travel together in the next
// batch. No batch takes more than its share of all: if one carried everything, the server would
// rest while the goroutines work, and the goroutines while the server does.
type Batcher struct {
	store Store
	ends  deadlines
	spare sync.Pool // *call, that nobody refers to any more

	mu       sync.Mutex
	inFlight int // batches under way
	requests int // requests under way
	answered time.Time
	queue    []*call
}

// NewBatcher makes a Batcher. It sends nothing.
func NewBatcher(s Store) *Batcher { return &Batcher{store: s} }

// A call is one request that waits for its reply.
type call struct {
	request  Request
	deadline time.Time
	done     chan Reply  // of one
	timer    *time.Timer // of the deadline
}

// A direct request is sent by its caller. This is what it needs, in one allocation.
type direct struct {
	until    until
	requests [1]Request
}

// errOver answers a request that was not sent in its time.
var errOver = errors.New("not sent in time: earlier requests got no answer")

// Do sends one request and waits for its reply or for the deadline, and for the end of ctx unless
// the caller sends the request itself (responsive). A reply that comes later is dropped.
func (b *Batcher) Do(ctx context.Context, request Request, deadline time.Time) Reply {
	if err := ctx.Err(); err != nil {
		return Reply{Err: protocol.EndOf(ctx), Unsent: true}
	}
	b.mu.Lock()
	alone := b.inFlight == 0 || b.inFlight < maxInFlight && b.requests <= fewRequests
	if alone {
		b.inFlight++
		b.requests++
		// The caller sends its request itself where it can, which saves a goroutine.
		if ctx.Done() == nil || time.Since(b.answered) < responsive {
			b.mu.Unlock()
			return b.sendDirect(ctx, request, deadline)
		}
	}
	c := b.call(request, deadline)
	var batch []*call
	if alone {
		batch = []*call{c}
	} else if b.queue = append(b.queue, c); b.inFlight < maxInFlight && len(b.queue) >= b.share() {
		b.inFlight++
		batch = b.take()
	}
	b.mu.Unlock()
	if batch != nil {
		go b.send(batch)
	}
	c.timer.Reset(time.Until(deadline))
	select {
	case reply := <-c.done:
		b.reuse(c)
		return reply
	case <-ctx.Done():
		return b.abandon(c, protocol.EndOf(ctx))
	case <-c.timer.C: // the batch, or one before it, has more time
		return b.abandon(c, context.DeadlineExceeded)
	}
}

// sendDirect sends a request that is counted already, as a batch of its own.
func (b *Batcher) sendDirect(ctx context.Context, request Request, deadline time.Time) Reply {
	if end, ok := ctx.Deadline(); ok && end.Before(deadline) {
		deadline = end
	}
	d := &direct{until{deadline: deadline, all: &b.ends}, [1]Request{request}}
	reply := b.store.Do(&d.until, d.requests[:])[0]
	d.until.over()
	b.finish(1, reply)
	return reply
}

// call is one that has been used before, if there is any. Its timer is still to be set.
func (b *Batcher) call(request Request, deadline time.Time) *call {
	c, _ := b.spare.Get().(*call)
	if c == nil {
		c = &call{done: make(chan Reply, 1), timer: time.NewTimer(time.Until(deadline))}
	}
	c.request, c.deadline = request, deadline
	return c
}

// reuse takes back a call that was answered. To an abandoned one, an answer may still come.
func (b *Batcher) reuse(c *call) {
	c.timer.Stop()
	c.request = Request{}
	b.spare.Put(c)
}

// abandon leaves a call: it is taken from the queue if it is still there, else its outcome is
// unknown.
func (b *Batcher) abandon(c *call, why error) Reply {
	c.timer.Stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, other := range b.queue {
		if other == c {
			b.queue = append(b.queue[:i], b.queue[i+1:]...)
			return Reply{Err: why, Unsent: true}
		}
	}
	select {
	case reply := <-c.done:
		return reply
	default:
		return Reply{Err: why}
	}
}

// finish ends a batch of so many requests, or sends what is in the queue in its place.
func (b *Batcher) finish(requests int, reply Reply) {
	if next := b.next(requests, reply); next != nil {
		go b.send(next)
	}
}

// send sends batches until the queue is empty.
func (b *Batcher) send(batch []*call) {
	for batch != nil {
		replies := b.exchange(batch)
		next := b.next(len(batch), replies[len(replies)-1])
		for i, reply := range replies {
			batch[i].done <- reply
		}
		batch = next
	}
}

// next takes what has come into the queue while a batch of so many requests was under way. If that
// is nothing, one batch less is under way. Reply is one of the batch's.
func (b *Batcher) next(requests int, reply Reply) []*call {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests -= requests
	b.answered = time.Time{}
	if reply.Err == nil {
		b.answered = time.Now()
	}
	if len(b.queue) == 0 {
		b.inFlight--
		return nil
	}
	batch := b.take()
	for len(b.queue) > 0 && b.inFlight < maxInFlight {
		b.inFlight++
		go b.send(b.take())
	}
	return batch
}

// share is how many requests a batch carries where there are enough. mu is held, as in take.
func (b *Batcher) share() int {
	return max(minShare, (b.requests+len(b.queue)+maxInFlight-1)/maxInFlight)
}

// take takes a batch from the front of the queue.
func (b *Batcher) take() []*call {
	n := min(len(b.queue), b.share(), maxBatch)
	b.requests += n
	batch := make([]*call, n)
	copy(batch, b.queue)
	rest := copy(b.queue, b.queue[n:])
	clear(b.queue[rest:])
	b.queue = b.queue[:rest]
	return batch
}

// exchange sends one batch and returns its replies. Its deadline is the last of its calls': each
// call waits no longer than for its own context.
func (b *Batcher) exchange(batch []*call) []Reply {
	now := time.Now()
	requests := make([]Request, 0, len(batch))
	var deadline time.Time
	for _, c := range batch {
		if c.deadline.After(now) {
			requests = append(requests, c.request)
			if c.deadline.After(deadline) {
				deadline = c.deadline
			}
		}
	}
	var sent []Reply
	if len(requests) > 0 {
		ctx := &until{deadline: deadline, all: &b.ends}
		sent = b.store.Do(ctx, requests)
		ctx.over()
	}
	if len(requests) == len(batch) {
		return sent
	}
	replies := make([]Reply, len(batch))
	for i, c := range batch {
		if c.deadline.After(now) {
			replies[i], sent = sent[0], sent[1:]
		} else {
			replies[i] = Reply{Err: errOver, Unsent: true}
		}
	}
	return replies
}
