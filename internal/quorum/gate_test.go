package quorum

import (
	"context"
	"crypto/sha1" //nolint:gosec // the server names scripts by it
	"encoding/hex"
	"errors"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/internal/native"
)

// A gate is before a master: what a test wants of each request happens first.
type gate struct {
	native.Server
	scripts map[string]string // operation, by its script or the digest of it

	mu    sync.Mutex
	say   func(op string) error // an error: the request does not get through
	after func(op string) error // an error: the answer does not
}

var errShut = errors.New("no connection")

// gates puts one before each master.
func gates(servers []native.Server) (all []*gate, behind []native.Server) {
	scripts := map[string]string{}
	for _, op := range names {
		text := source("q", op)
		sum := sha1.Sum([]byte(text)) //nolint:gosec // the server names scripts by it
		scripts[hex.EncodeToString(sum[:])], scripts[text] = op, op
	}
	for _, s := range servers {
		g := &gate{Server: s, scripts: scripts}
		all, behind = append(all, g), append(behind, g)
	}
	return all, behind
}

// set says what happens to requests from now on; nil: nothing.
func (g *gate) set(say func(op string) error) {
	g.mu.Lock()
	g.say = say
	g.mu.Unlock()
}

// answers says what happens to answers from now on; nil: nothing.
func (g *gate) answers(after func(op string) error) {
	g.mu.Lock()
	g.after = after
	g.mu.Unlock()
}

// shut lets nothing through.
func (g *gate) shut() { g.set(func(string) error { return errShut }) }

// Do implements native.Server.
func (g *gate) Do(ctx context.Context, requests []native.Request) []native.Reply {
	g.mu.Lock()
	say, after := g.say, g.after
	g.mu.Unlock()
	replies := make([]native.Reply, len(requests))
	for i, request := range requests {
		digest, _ := request.Args[1].(string)
		if say != nil {
			if err := say(g.scripts[digest]); err != nil {
				replies[i] = native.Reply{Err: err, Unsent: true}
				continue
			}
		}
		replies[i] = g.Server.Do(ctx, []native.Request{request})[0]
		if after != nil && replies[i].Refused == "" {
			if err := after(g.scripts[digest]); err != nil {
				replies[i] = native.Reply{Err: err}
			}
		}
	}
	return replies
}

// do sends a command to a master, past the gate.
func do(t *testing.T, s native.Server, args ...any) any {
	t.Helper()
	if g, ok := s.(*gate); ok {
		s = g.Server
	}
	value, err := s.(master).Server.Do(args...)
	if err != nil {
		t.Fatal(err)
	}
	return value
}
