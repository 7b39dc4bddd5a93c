package engine_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

// endless is a protocol whose Probe keeps to no deadline.
type endless struct {
	protocol.Protocol
	released chan struct{}
}

func (e endless) Probe(context.Context) error {
	<-e.released
	return nil
}

// A store that keeps to no deadline does not make a readiness probe hang.
func TestProbeWithoutAnswerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := endless{memory.New(protocol.Features{Queue: true, Tokens: true}).Connect("p"), make(chan struct{})}
		e := engine.New(p, engine.Config{ReleaseTimeout: time.Second, Logger: slog.New(slog.DiscardHandler),
			Cause: func(engine.Lost) error { return errors.New("lost") }, Closed: errors.New("closed")})
		start := time.Now()
		var failure *protocol.Failure
		if err := e.Probe(t.Context()); !errors.As(err, &failure) || failure.Reason != protocol.NoAnswer {
			t.Errorf("got %v", err)
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
		close(p.released)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}
