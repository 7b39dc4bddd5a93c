package holdfast_test

import (
	"context"
	"os"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/storetest"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// TestConformance shows that the engine keeps its promises over whatever a protocol can do.
func TestConformance(t *testing.T) {
	for name, features := range map[string]protocol.Features{
		"queue": {Queue: true}, "no queue": {},
	} {
		backend := on(features, func(c *memory.Client) protocol.Protocol { return c })
		t.Run(name, func(t *testing.T) { onFakeClock(t, backend) })
		t.Run(name+", real time", func(t *testing.T) {
			if os.Getenv("HOLDFAST_PROOF") == "" {
				t.Skip("with HOLDFAST_PROOF=1 only")
			}
			backend.start()
			storetest.Run(t, backend.Backend)
		})
	}
	backend := on(protocol.Features{Queue: true}, func(c *memory.Client) protocol.Protocol { return apart{c} })
	t.Run("names that lie apart", func(t *testing.T) { onFakeClock(t, backend) })
}

// apart is a protocol that asks for each name alone.
type apart struct{ *memory.Client }

func (apart) AskAll(context.Context, []protocol.ResourceAsk) ([]protocol.Answer, error) {
	return nil, protocol.ErrApart
}

// A backend is a server in memory, for the suite.
type backend struct {
	storetest.Backend
	start func() // anew and empty
}

func on(features protocol.Features, through func(*memory.Client) protocol.Protocol) backend {
	var server *memory.Server
	return backend{storetest.Backend{
		Open: func(tb testing.TB, config *holdfast.Config) *holdfast.Client {
			client, err := holdfast.NewOn(through(server.Connect(config.Prefix)), config)
			if err != nil {
				tb.Fatal(err)
			}
			return client
		},
		Left:      func(_ testing.TB, prefix string) []string { return server.Names(prefix) },
		NoQueue:   !features.Queue,
		NoHistory: true,
	}, func() { server = memory.New(features) }}
}

func onFakeClock(t *testing.T, b backend) {
	b.Around = func(t *testing.T, run func(*testing.T)) {
		synctest.Test(t, func(t *testing.T) {
			b.start()
			run(t)
		})
	}
	storetest.Run(t, b.Backend)
}
