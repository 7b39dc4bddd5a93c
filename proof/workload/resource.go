package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/proof/history"
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

// A storage is a worker's connection to the resource.
type storage struct {
	conn net.Conn
	in   *json.Decoder
	out  *json.Encoder
}

func dialResource(addr string) (*storage, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("resource: %w", err)
	}
	return &storage{conn: conn, in: json.NewDecoder(conn), out: json.NewEncoder(conn)}, nil
}

func (s *storage) close() { _ = s.conn.Close() }

func (s *storage) ask(a access) (access, error) {
	var answer access
	if err := errors.Join(s.out.Encode(a), s.in.Decode(&answer)); err != nil {
		return access{}, fmt.Errorf("resource: %w", err)
	}
	return answer, nil
}

// askSilence wishes that the network between this worker and the server fall silent.
func (s *storage) askSilence(slot int, long time.Duration) error {
	_, err := s.ask(access{Slot: slot, Mute: long})
	return err
}

// read gives the value, if the token is good; shares: that of a hold that excludes no readers.
func (s *storage) read(name string, token int64, shares bool) (value int64, ok bool, err error) {
	answer, err := s.ask(access{Name: name, Token: token, Reads: shares})
	return answer.Value, answer.Taken, err
}

// write puts value in the place of value-1, if the token is good.
func (s *storage) write(name string, token, value int64) (history.Result, error) {
	answer, err := s.ask(access{Name: name, Token: token, Write: true, Value: value, Base: value - 1})
	switch {
	case !answer.Taken:
		return history.Refused, err
	case answer.Lost:
		return history.LostUpdate, err
	}
	return history.OK, err
}
