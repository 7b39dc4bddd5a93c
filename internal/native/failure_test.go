package native

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Every command of the scripts that can raise an error says by a name which key it is about.
func TestScriptsNameTheirKeys(t *testing.T) {
	all := loadScripts(false)
	for _, s := range []script{all.ask, all.free, all.renew, all.downgrade, all.resize, all.look, all.inspect, all.all,
		all.latch} {
		for _, line := range s.Unnamed() {
			t.Errorf("%s: which keys are they in %q?", s.Name, line)
		}
	}
}

// A queue that is none refuses an ask before anything was done, unless the ask gave another hold
// back: then that may be over.
func TestForeignQueueOfAskThatGivesBack(t *testing.T) {
	at := slices.Index(strings.Split(source("ask", false), "\n"), "local waits = self and redis.call('ZSCORE', queue, self)")
	refused := fmt.Sprintf("WRONGTYPE Operation against a key script: %s, on @user_script:%d.", digests[digestKey{"ask", false}], at+1)
	r := New(liar{wire.Reply{Refused: refused}}, Config{Prefix: "p", Process: "x",
		Timeout: time.Second}).Bind(specOf("n"))
	ask := protocol.Ask{Ticket: protocol.Ticket{ID: "0123456789012345678901", Block: 1}, TTL: time.Second,
		Deadline: time.Now().Add(time.Minute)}
	var foreign *protocol.Foreign
	if _, err := r.Ask(t.Context(), ask); !errors.As(err, &foreign) || foreign.Key != "p:{n}:queue" ||
		len(foreign.Alternatives) != 0 {
		t.Errorf("got %v", err)
	}
	ask.Release = &protocol.Ticket{ID: "1123456789012345678901", Block: 1}
	var failure *protocol.Failure
	if _, err := r.Ask(t.Context(), ask); !errors.As(err, &failure) || failure.Reason != protocol.ForeignKey ||
		!failure.Unknown ||
		!strings.Contains(err.Error(), `"p:{n}:queue"`) {
		t.Errorf("got %v", err)
	}
}

// unreachable is a server that no request reaches.
type unreachable struct{ liar }

func (unreachable) Describe(context.Context) (wire.Topology, error) {
	return wire.Topology{}, errors.New("connection refused")
}

// The first request of a client that fails names its own operation, although it asked for the
// topology alone.
func TestFirstRequestNamesItsOperation(t *testing.T) {
	deadline := time.Now().Add(time.Minute)
	for op, call := range map[string]func(*Protocol) error{
		"inspect": func(p *Protocol) error {
			_, err := p.Inspect(t.Context(), "n", protocol.Page{})
			return err
		},
		"look": func(p *Protocol) error {
			_, err := p.Bind(specOf("n")).Look(t.Context(), nil)
			return err
		},
		"resize": func(p *Protocol) error { return p.Bind(specOf("n")).Resize(t.Context(), 3, deadline) },
		"lock":   func(p *Protocol) error { return p.Ready(t.Context(), "n") },
	} {
		err := call(New(unreachable{}, Config{Prefix: "p", Process: "x", Timeout: time.Second}))
		var failure *protocol.Failure
		if !errors.As(err, &failure) || failure.Op != op || failure.Name != "n" {
			t.Errorf("%s: got %+v", op, failure)
		}
	}
}
