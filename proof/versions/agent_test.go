package versions

import (
	"encoding/json"
	"os/exec"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// A peer is a running agent.
type peer struct {
	*testing.T
	name string

	mu      sync.Mutex
	in      *json.Encoder
	waiting map[int]chan Answer
	last    int
}

func (v version) startAgent(t *testing.T, servers ...*redisserver.Server) *peer {
	t.Helper()
	args := []string{"versions"}
	for _, srv := range servers {
		args = append(args, srv.Addr())
	}
	agent := harness.Start(t, exec.Command(v.agent, args...))
	p := &peer{T: t, name: v.name, in: json.NewEncoder(agent.Stdin), waiting: map[int]chan Answer{}}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for {
			var a Answer
			if agent.Lines.Decode(&a) != nil {
				return
			}
			p.mu.Lock()
			p.waiting[a.ID] <- a
			p.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = agent.Stdin.Close()
		<-read
		if err := agent.Wait(); err != nil {
			t.Errorf("the agent of %s: %v", v.name, err)
		}
	})
	return p
}

// send asks for something, and does not wait.
func (p *peer) send(r Request) <-chan Answer {
	p.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	r.ID = p.last
	c := make(chan Answer, 1)
	p.waiting[r.ID] = c
	if err := p.in.Encode(r); err != nil {
		p.Fatalf("%s: %v", p.name, err)
	}
	return c
}

func (p *peer) await(c <-chan Answer) Answer {
	p.Helper()
	select {
	case a := <-c:
		return a
	case <-harness.Within(p.T, 2*harness.Patience).Done():
		p.Fatalf("%s: no answer", p.name)
		return Answer{}
	}
}

func (p *peer) mustDo(r Request) Answer {
	p.Helper()
	a := p.await(p.send(r))
	if a.Error != "" {
		p.Fatalf("%s: %s %s %s: %s", p.name, r.Do, r.Kind, r.Name+r.Lease, a.Error)
	}
	return a
}

func (p *peer) mustFail(class string, r Request) Answer {
	p.Helper()
	a := p.await(p.send(r))
	if a.Error == "" || a.Class != class {
		p.Fatalf("%s: %s %s %s: class %q, error %q, want an error of class %q", p.name, r.Do, r.Kind, r.Name+r.Lease,
			a.Class, a.Error, class)
	}
	return a
}

// awaitWaiters waits until the name has so many waiters.
func (p *peer) awaitWaiters(name string, n int) {
	p.Helper()
	harness.Eventually(p.T, "the name has its waiters",
		func() bool { return p.mustDo(Request{Do: "inspect", Name: name}).Waiters == n })
}
