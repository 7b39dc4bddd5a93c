package wire

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

const (
	// maxInFlight is how many batches are in flight at once.
	maxInFlight = 3

	// fewRequests bounds going alone: a request is sent alone while at most so many are in flight.
	// Above that, batching gives more throughput.
	fewRequests = 2

	// minShare is the smallest share of a batch. Fewer requests in the queue wait for the end of a
	// batch.
	minShare = 8

	// maxBatch bounds the requests of one batch.
	maxBatch = 256

	// responsiveFor is how long after an answer the server is taken to be responsive. A caller that
	// sends its request itself does not watch its context meanwhile. So a caller whose context can
	// be cancelled sends its request itself only to a responsive server. If the server still
	// answers, the caller learns of a cancellation one answer late. If the server has just ceased
	// to answer, the caller learns of it at its deadline.
	responsiveFor = time.Second
)

// A Batcher carries the requests of many goroutines to one server. While few are in flight, each
// goes at once and alone. Requests that come while more are in flight wait in a queue, and travel
// together in the next batch. No batch takes more than its share of all: if one carried everything,
// the server would rest while the goroutines work, and the goroutines while the server does.
//
// There is no background goroutine. Requests wait in the queue only while a batch is in flight, and
// the goroutine that ends a batch starts the next ones.
type Batcher struct {
	store     Store
	deadlines deadlines // the timer that the contexts of all batches share
	calls     sync.Pool // of *call, for newCall

	mu         sync.Mutex // guards all below; never held over a request
	inFlight   int        // batches sent and not ended, also those of one request; at most maxInFlight
	requests   int        // requests in these batches
	answeredAt time.Time  // of the last answer; zero: there was none, or not to the last request sent
	failure    error      // of the last request that a batch carried, or was to carry; nil: none
	queue      []*call    // not yet in a batch, in the order in which they came
}

// NewBatcher makes a Batcher. It sends nothing.
func NewBatcher(s Store) *Batcher { return &Batcher{store: s} }

// A call is one request that waits for its reply, in the queue or in a batch.
type call struct {
	request  Request
	deadline time.Time
	done     chan Reply  // gets the one reply; has room for it, as the caller may have gone
	timer    *time.Timer // of the deadline; only the caller's goroutine uses it
}

// A directCall is what a caller needs to send its request itself, in one allocation.
type directCall struct {
	ctx      deadlineContext
	requests [1]Request
}

// errExpiredBeforeSend answers a request whose deadline was over before its batch was sent, if no
// earlier one has failed yet.
var errExpiredBeforeSend = errors.New("not sent in time: earlier requests have no answer")

// Do sends one request and returns its reply. It returns without one when ctx ends or the deadline
// is over, and then drops a reply that comes later. It may notice a cancellation late, as
// responsiveFor says.
func (b *Batcher) Do(ctx context.Context, request Request, deadline time.Time) Reply {
	if ctx.Err() != nil {
		return Reply{Err: protocol.EndOf(ctx), Unsent: true}
	}
	b.mu.Lock()
	if b.mayGoAloneLocked() && b.mayBlockLocked(ctx) {
		b.startLocked(1)
		b.mu.Unlock()
		return b.sendDirect(ctx, request, deadline)
	}
	c := b.newCall(request, deadline)
	batch := b.enqueueLocked(c)
	b.mu.Unlock()
	if batch != nil {
		go b.sendBatches(batch)
	}
	return b.await(ctx, c)
}

// sendDirect sends a request as a batch of its own, which startLocked has counted. The caller's
// goroutine does it, which saves another one.
func (b *Batcher) sendDirect(ctx context.Context, request Request, deadline time.Time) Reply {
	if end, ok := ctx.Deadline(); ok && end.Before(deadline) {
		deadline = end
	}
	d := &directCall{deadlineContext{deadline: deadline, all: &b.deadlines}, [1]Request{request}}
	replies := b.store.Do(&d.ctx, d.requests[:])
	d.ctx.release()
	if next := b.finish(1, replies); next != nil {
		go b.sendBatches(next)
	}
	return replies[0]
}

// newCall returns a call that was used before, or a new one.
func (b *Batcher) newCall(request Request, deadline time.Time) *call {
	c, _ := b.calls.Get().(*call)
	if c == nil {
		c = &call{done: make(chan Reply, 1)}
	}
	c.request, c.deadline = request, deadline
	return c
}

// await waits for the reply to a call that is in the queue or in a batch.
func (b *Batcher) await(ctx context.Context, c *call) Reply {
	if wait := time.Until(c.deadline); c.timer == nil {
		c.timer = protocol.NewTimer(wait)
	} else {
		protocol.ResetTimer(c.timer, wait)
	}
	select {
	case reply := <-c.done:
		b.recycle(c)
		return reply
	case <-ctx.Done():
		return b.abandon(c, protocol.EndOf(ctx))
	case <-c.timer.C: // the batch that it is in or waits for may have a later deadline
		return b.abandon(c, nil)
	}
}

// recycle takes back a call that was answered, for newCall. Its batch has sent the one reply, and
// uses the call no more.
func (b *Batcher) recycle(c *call) {
	c.timer.Stop()
	c.request = Request{}
	b.calls.Put(c)
}

// abandon gives up a call, and returns the reply if it has come at the last moment. Else the
// reply's error is why; nil: its deadline. A call that is still in the queue is taken out, and its
// request is unsent. An abandoned call is not recycled, as its batch may still answer it.
func (b *Batcher) abandon(c *call, why error) Reply {
	c.timer.Stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.queue, c); i >= 0 {
		b.queue = slices.Delete(b.queue, i, i+1)
		if why == nil {
			why = b.expiredLocked()
		}
		return Reply{Err: why, Unsent: true}
	}
	select {
	case reply := <-c.done:
		return reply
	default:
		if why == nil {
			why = context.DeadlineExceeded
		}
		return Reply{Err: why}
	}
}

// expiredLocked returns why a request whose deadline is over was not sent: those before it failed.
func (b *Batcher) expiredLocked() error {
	if b.failure == nil {
		return errExpiredBeforeSend
	}
	return fmt.Errorf("not sent in time, behind others: %w", b.failure)
}

// sendBatches sends a batch, and then another one in its place as long as there are any.
func (b *Batcher) sendBatches(batch []*call) {
	for batch != nil {
		size := len(batch)
		batch = b.answerExpired(batch)
		replies := b.exchange(batch)
		next := b.finish(size, replies)
		for i, reply := range replies {
			batch[i].done <- reply // does not block: done has room
		}
		batch = next
	}
}

// answerExpired answers the calls whose deadline is over: they are not sent. It returns the others,
// in the same slice.
func (b *Batcher) answerExpired(batch []*call) []*call {
	now := time.Now()
	b.mu.Lock()
	why := b.expiredLocked()
	b.mu.Unlock()
	return slices.DeleteFunc(batch, func(c *call) bool {
		if c.deadline.After(now) {
			return false
		}
		c.done <- Reply{Err: why, Unsent: true}
		return true
	})
}

// exchange sends the requests of a batch and returns their replies. Its deadline is the latest of
// its calls': a caller whose own is over sooner does not wait for the batch.
func (b *Batcher) exchange(batch []*call) []Reply {
	if len(batch) == 0 {
		return nil
	}
	requests := make([]Request, len(batch))
	ctx := &deadlineContext{all: &b.deadlines}
	for i, c := range batch {
		requests[i] = c.request
		if c.deadline.After(ctx.deadline) {
			ctx.deadline = c.deadline
		}
	}
	replies := b.store.Do(ctx, requests)
	ctx.release()
	return replies
}

// finish ends a batch of so many requests, with the replies to those that were sent, and starts
// batches from the queue. It returns one of them for the caller to send in its place, or nil.
func (b *Batcher) finish(requests int, replies []Reply) (next []*call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inFlight--
	b.requests -= requests
	b.noteAnswerLocked(replies)
	for len(b.queue) > 0 && b.inFlight < maxInFlight {
		batch := b.startBatchLocked()
		if next == nil {
			next = batch
		} else {
			go b.sendBatches(batch)
		}
	}
	return next
}

// noteAnswerLocked notes whether the server answers. Of a batch, the last reply is the newest. A
// request that was not sent says nothing of the server.
func (b *Batcher) noteAnswerLocked(replies []Reply) {
	if n := len(replies); n > 0 {
		b.failure = replies[n-1].Err
	}
	for i := len(replies) - 1; i >= 0; i-- {
		switch {
		case replies[i].Unsent:
		case replies[i].Err == nil:
			b.answeredAt = time.Now()
			return
		default:
			b.answeredAt = time.Time{}
			return
		}
	}
}

// mayBlockLocked reports whether a caller may send its request itself, without watching its
// context: the context cannot be cancelled, or an answer is expected soon (responsiveFor).
func (b *Batcher) mayBlockLocked(ctx context.Context) bool {
	return ctx.Done() == nil || b.responsiveLocked()
}

// responsiveLocked reports whether the server answered the last request that was sent, and
// recently.
func (b *Batcher) responsiveLocked() bool { return time.Since(b.answeredAt) < responsiveFor }

// mayGoAloneLocked reports whether a new request may go at once beside those in flight. Then the
// queue is empty, and the request overtakes none: finish leaves requests in the queue only while
// maxInFlight batches are in flight, and enqueueLocked only while a request may not go alone.
func (b *Batcher) mayGoAloneLocked() bool {
	return b.inFlight == 0 || b.inFlight < maxInFlight && b.requests <= fewRequests
}

// enqueueLocked puts a call into the queue. It starts a batch and returns it if there may be
// another one, and if the call may go alone or the queue is worth a batch. Else it returns nil, and
// finish starts the batch.
func (b *Batcher) enqueueLocked(c *call) (batch []*call) {
	alone := b.mayGoAloneLocked()
	b.queue = append(b.queue, c)
	if alone || b.inFlight < maxInFlight && len(b.queue) >= b.shareLocked() {
		return b.startBatchLocked()
	}
	return nil
}

// startBatchLocked makes a batch from the front of the queue, which is not empty. The batch counts
// as in flight, and the caller must have it sent.
func (b *Batcher) startBatchLocked() []*call {
	n := min(len(b.queue), b.shareLocked(), maxBatch)
	batch := slices.Clone(b.queue[:n])
	b.queue = slices.Delete(b.queue, 0, n) // keeps the array, for the next calls
	b.startLocked(n)
	return batch
}

// shareLocked returns how many requests a batch carries if there are enough: an equal part of those
// that are in flight or in the queue.
func (b *Batcher) shareLocked() int {
	all := b.requests + len(b.queue)
	return max(minShare, (all+maxInFlight-1)/maxInFlight)
}

// startLocked counts a batch of so many requests as in flight, until finish.
func (b *Batcher) startLocked(requests int) {
	b.inFlight++
	b.requests += requests
}
