package quorum

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/store"
)

// A lag is what delays the messages between a client and the masters. A request that is late still
// arrives, as on a network, when its sender has given it up.
type lag struct {
	mu       sync.Mutex
	requests time.Duration // at most, at random
	answers  time.Duration // exactly
	all      sync.WaitGroup
}

func (l *lag) set(requests, answers time.Duration) {
	l.mu.Lock()
	l.requests, l.answers = requests, answers
	l.mu.Unlock()
}

func (l *lag) draw() (request, answer time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.requests > 0 && rand.IntN(3) == 0 { // some are late, and most are not
		request = rand.N(l.requests)
	}
	return request, l.answers
}

type lagging struct {
	store.Store
	lag *lag
}

// Do implements store.Store.
func (s *lagging) Do(ctx context.Context, node string, commands []store.Command) []store.Reply {
	request, answer := s.lag.draw()
	if request == 0 && answer == 0 {
		return s.Store.Do(ctx, node, commands)
	}
	done := make(chan []store.Reply, 1)
	s.lag.all.Add(1)
	go func() {
		defer s.lag.all.Done()
		<-time.After(request)
		late, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		replies := s.Store.Do(late, node, commands)
		<-time.After(answer)
		done <- replies
	}()
	end, _ := ctx.Deadline()
	select {
	case replies := <-done:
		return replies
	case <-time.After(time.Until(end)):
		replies := make([]store.Reply, len(commands))
		for i := range replies {
			replies[i].Err = context.DeadlineExceeded
		}
		return replies
	}
}
