package workload

import (
	"encoding/json"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/proof/judge"
)

// A Resource is storage for the workers, as judge.Storage is: every worker reads, adds one, and
// writes.
type Resource struct {
	listener net.Listener
	serving  sync.WaitGroup

	mute func(slot int, long time.Duration)

	mu     sync.Mutex
	stored judge.Storage
}

type access struct {
	Name  string
	Token int64
	Write bool
	Reads bool  // of a read: the hold excludes no readers
	Value int64 // to write, or read
	Base  int64 // what the writer had read
	Taken bool
	Lost  bool

	Slot int
	Mute time.Duration // not an access, but a wish: that the network of this slot fall silent, now that a lease is held
}

// NewResource starts one on the loopback interface. It calls mute when a worker wishes to be muted.
func NewResource(mute func(slot int, long time.Duration)) (*Resource, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("workload: resource: %w", err)
	}
	r := &Resource{listener: listener, mute: mute}
	r.serving.Go(r.accept)
	return r, nil
}

// Addr returns where it listens.
func (r *Resource) Addr() string { return r.listener.Addr().String() }

// Count returns what it has seen so far.
func (r *Resource) Count() judge.Accesses {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stored.Count
}

// Close ends it, when all who use it have ended.
func (r *Resource) Close() error {
	err := r.listener.Close()
	r.serving.Wait()
	return err
}

func (r *Resource) accept() {
	for {
		conn, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.serving.Go(func() { r.serve(conn) })
	}
}

func (r *Resource) serve(conn net.Conn) {
	defer conn.Close()
	in, out := json.NewDecoder(conn), json.NewEncoder(conn)
	for {
		var a access
		if in.Decode(&a) != nil { // the worker is gone, as workers go here
			return
		}
		r.answer(&a)
		if out.Encode(a) != nil {
			return
		}
	}
}

func (r *Resource) answer(a *access) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case a.Mute > 0:
		r.mute(a.Slot, a.Mute)
	case a.Write:
		a.Taken, a.Lost = r.stored.Write(a.Name, a.Token, a.Base, a.Value)
	default:
		a.Value, a.Taken = r.stored.Read(a.Name, a.Token, a.Reads)
	}
}
