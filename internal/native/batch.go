package native

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/store"
)

const (
	maxFlights = 3   // batches of a lane under way at once
	fewAboard  = 2   // requests under way beside which another may go; beside more, gathering is quicker for all
	minShare   = 8   // requests that are worth a flight of their own
	maxBatch   = 256 // requests in a batch

	// As long ago as the last answer may be for a caller to carry its own request although it could be cancelled: on
	// a lane that answers, it hears of the end of its context an answer late; on one that just ceased to, by one time-out.
	answersFor = time.Second
)

// A lane carries the requests of many goroutines to one node. While few are under way, each goes at once and alone;
// those that come while more are travel together with the next flight. No flight takes more than its share of all: when
// one carried everything, the server would rest while the goroutines work, and they while it does.
type lane struct {
	server store.Store
	ends   deadlines
	spare  sync.Pool // *call, of which nobody knows any more

	mu       sync.Mutex
	flights  int
	aboard   int // requests under way
	answered time.Time
	queue    []*call
}

// A call is one request under way.
type call struct {
	request  store.Request
	deadline time.Time
	done     chan store.Reply // of one
	timer    *time.Timer      // of the deadline
}

// A solo is what a caller takes along that carries its own request.
type solo struct {
	until    until
	requests [1]store.Request
}

// errOver answers a request that was not sent in its time.
var errOver = errors.New("not sent in time: earlier requests got no answer")

// do sends one request and waits for its reply, for ctx, or for the deadline. A reply of its own may still come after
// ctx ended; it is dropped.
func (l *lane) do(ctx context.Context, request store.Request, deadline time.Time) store.Reply {
	if err := ctx.Err(); err != nil {
		return store.Reply{Err: protocol.EndOf(ctx), Unsent: true}
	}
	l.mu.Lock()
	alone := l.flights == 0 || l.flights < maxFlights && l.aboard <= fewAboard
	if alone {
		l.flights++
		l.aboard++
		// A caller carries its request itself where it can: a goroutine less on the way.
		if ctx.Done() == nil || time.Since(l.answered) < answersFor {
			l.mu.Unlock()
			if end, ok := ctx.Deadline(); ok && end.Before(deadline) {
				deadline = end
			}
			trip := &solo{until{deadline: deadline, all: &l.ends}, [1]store.Request{request}}
			reply := l.server.Do(&trip.until, trip.requests[:])[0]
			trip.until.over()
			l.land(1, reply)
			return reply
		}
	}
	c := l.call(request, deadline)
	var batch []*call
	if alone {
		batch = []*call{c}
	} else if l.queue = append(l.queue, c); l.flights < maxFlights && len(l.queue) >= l.share() {
		l.flights++
		batch = l.take()
	}
	l.mu.Unlock()
	if batch != nil {
		go l.fly(batch)
	}
	c.timer.Reset(time.Until(deadline))
	select {
	case reply := <-c.done:
		l.reuse(c)
		return reply
	case <-ctx.Done():
		return l.abandon(c, protocol.EndOf(ctx))
	case <-c.timer.C: // its flight, or one before it, has more time
		return l.abandon(c, context.DeadlineExceeded)
	}
}

// call is one that has been used before, if there is any. Its timer is still to be set.
func (l *lane) call(request store.Request, deadline time.Time) *call {
	c, _ := l.spare.Get().(*call)
	if c == nil {
		c = &call{done: make(chan store.Reply, 1), timer: time.NewTimer(time.Until(deadline))}
	}
	c.request, c.deadline = request, deadline
	return c
}

// reuse takes a call back that was answered. To one that was abandoned, an answer may still come.
func (l *lane) reuse(c *call) {
	c.timer.Stop()
	c.request = store.Request{}
	l.spare.Put(c)
}

// abandon leaves a call: taken from the queue if it is still there, else its outcome is unknown.
func (l *lane) abandon(c *call, why error) store.Reply {
	c.timer.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, other := range l.queue {
		if other == c {
			l.queue = append(l.queue[:i], l.queue[i+1:]...)
			return store.Reply{Err: why, Unsent: true}
		}
	}
	select {
	case reply := <-c.done:
		return reply
	default:
		return store.Reply{Err: why}
	}
}

// land ends a flight, or sends another off with what has gathered.
func (l *lane) land(landed int, reply store.Reply) {
	if next := l.next(landed, reply); next != nil {
		go l.fly(next)
	}
}

// fly carries batches until nothing is left.
func (l *lane) fly(batch []*call) {
	for batch != nil {
		replies := l.send(batch)
		next := l.next(len(batch), replies[len(replies)-1])
		for i, reply := range replies {
			batch[i].done <- reply
		}
		batch = next
	}
}

// next takes what has gathered while a flight was under way; when that is nothing, the flight is over. Reply is one of
// those that it brought.
func (l *lane) next(landed int, reply store.Reply) []*call {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.aboard -= landed
	l.answered = time.Time{}
	if reply.Err == nil {
		l.answered = time.Now()
	}
	if len(l.queue) == 0 {
		l.flights--
		return nil
	}
	batch := l.take()
	for len(l.queue) > 0 && l.flights < maxFlights {
		l.flights++
		go l.fly(l.take())
	}
	return batch
}

// share is how many requests a flight carries where there are enough. It is called with mu held, as take is.
func (l *lane) share() int {
	return max(minShare, (l.aboard+len(l.queue)+maxFlights-1)/maxFlights)
}

// take takes a batch from the front of the queue.
func (l *lane) take() []*call {
	n := min(len(l.queue), l.share(), maxBatch)
	l.aboard += n
	batch := make([]*call, n)
	copy(batch, l.queue)
	rest := copy(l.queue, l.queue[n:])
	clear(l.queue[rest:])
	l.queue = l.queue[:rest]
	return batch
}

// send carries one batch. Its deadline is the last of its calls': each of them waits no longer than for its own ctx.
func (l *lane) send(batch []*call) []store.Reply {
	now := time.Now()
	requests := make([]store.Request, 0, len(batch))
	var deadline time.Time
	for _, c := range batch {
		if c.deadline.After(now) {
			requests = append(requests, c.request)
			if c.deadline.After(deadline) {
				deadline = c.deadline
			}
		}
	}
	var sent []store.Reply
	if len(requests) > 0 {
		ctx := &until{deadline: deadline, all: &l.ends}
		sent = l.server.Do(ctx, requests)
		ctx.over()
	}
	if len(requests) == len(batch) {
		return sent
	}
	replies := make([]store.Reply, len(batch))
	for i, c := range batch {
		if c.deadline.After(now) {
			replies[i], sent = sent[0], sent[1:]
		} else {
			replies[i] = store.Reply{Err: errOver, Unsent: true}
		}
	}
	return replies
}
