package shard

import (
	"context"
	"log/slog"

	"github.com/holdfast-go/holdfast"
)

const (
	maxShards  = 4096
	maxWeight  = 1000
	maxMembers = 100 // the holds that an Info lists
)

// An Option sets how a process takes part.
type Option func(*settings)

type settings struct {
	weight int
	lock   []holdfast.Option
	logger *slog.Logger
}

// WithWeight gives this process a share so many times as large as that of a process of weight 1. It
// is from 1, the default, to 1,000.
func WithWeight(weight int) Option { return func(s *settings) { s.weight = weight } }

// WithLock sets options of the leases, such as their TTL and their label. WithOwner has no effect.
func WithLock(options ...holdfast.Option) Option {
	return func(s *settings) { s.lock = append(s.lock, options...) }
}

// WithLogger receives a warning for a function that goes on for a TTL after its context has ended,
// and again at doubling times. It defaults to discarding.
func WithLogger(logger *slog.Logger) Option { return func(s *settings) { s.logger = logger } }

func newSettings(options []Option) settings {
	s := settings{weight: 1}
	for _, option := range options {
		if option != nil {
			option(&s)
		}
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	return s
}

// check returns what is wrong with a set and the context of a call on it.
func (s *Set) check(ctx context.Context, call string) error {
	if s == nil || s.n == 0 && s.client == nil && s.name == "" {
		return refuse(call, holdfast.ArgumentProblem{Argument: "Set", Allowed: "made by New"})
	}
	var bad []holdfast.ArgumentProblem
	want := func(right bool, argument string, value any, allowed string) {
		if !right {
			bad = append(bad, holdfast.ArgumentProblem{Argument: argument, Value: value, Allowed: allowed})
		}
	}
	want(ctx != nil, "ctx", nil, "not nil")
	want(s.client != nil, "client", nil, "not nil")
	want(s.name != "" && len(s.name) <= maxName, "name", s.name, "from 1 to 1019 bytes")
	want(s.n >= 1 && s.n <= maxShards, "n", s.n, "from 1 to 4096")
	want(s.weight >= 1 && s.weight <= maxWeight, "WithWeight", s.weight, "from 1 to 1000")
	if len(bad) == 0 {
		return nil
	}
	return refuse(call, bad...)
}

func refuse(call string, bad ...holdfast.ArgumentProblem) error {
	return &holdfast.ArgumentError{Call: call, Problems: bad}
}
