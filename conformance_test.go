package holdfast_test

import (
	"context"
	"os"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/leak"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
	"github.com/holdfast-go/holdfast/storetest"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// TestConformance shows that the engine keeps its promises over whatever a protocol can do.
func TestConformance(t *testing.T) {
	for name, features := range map[string]protocol.Features{
		"queue and tokens": {Queue: true, Tokens: true},
		"queue":            {Queue: true},
		"tokens":           {Tokens: true},
		"neither":          {},
	} {
		conformance(t, name, features, func(c *memory.Client) protocol.Protocol { return c })
	}
	conformance(t, "names that lie apart", protocol.Features{Queue: true, Tokens: true}, func(c *memory.Client) protocol.Protocol { return apart{c} })
}

// apart is a protocol that asks for each name alone.
type apart struct{ *memory.Client }

func (apart) AskAll(context.Context, []protocol.Asking) ([]protocol.Answer, error) {
	return nil, protocol.Apart
}

// conformance runs the suite on a fake clock; where time is given, on the real one too.
func conformance(t *testing.T, name string, features protocol.Features, through func(*memory.Client) protocol.Protocol) {
	var server *memory.Server
	backend := storetest.Backend{
		Open: func(tb testing.TB, config *holdfast.Config) *holdfast.Client {
			client, err := holdfast.NewOn(through(server.Connect(config.Prefix)), config)
			if err != nil {
				tb.Fatal(err)
			}
			return client
		},
		Left:     func(_ testing.TB, prefix string) []string { return server.Names(prefix) },
		NoQueue:  !features.Queue,
		NoTokens: !features.Tokens,
	}
	t.Run(name, func(t *testing.T) {
		backend := backend
		backend.Around = func(t *testing.T, run func(*testing.T)) {
			synctest.Test(t, func(t *testing.T) {
				server = memory.New(features)
				run(t)
			})
		}
		storetest.Run(t, backend)
	})
	t.Run(name+", real time", func(t *testing.T) {
		if os.Getenv("HOLDFAST_CHECK") == "" {
			t.Skip("with HOLDFAST_CHECK=1 only")
		}
		server = memory.New(features)
		storetest.Run(t, backend)
	})
}
