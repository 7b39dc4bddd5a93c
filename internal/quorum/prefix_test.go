package quorum

import (
	"log/slog"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Two quorums on the same masters, under two prefixes: that the first has seen a restart is nothing
// to the second, which has a memory of its own that came back from a snapshot.
func TestEachPrefixSeesARestart(t *testing.T) {
	servers := start(t)
	open := func(prefix string, trust bool) *Protocol {
		p := New(servers, Config{Prefix: prefix, Process: string(id(1)), MaxTTL: time.Hour, Trust: trust, Logger: slog.New(slog.DiscardHandler)})
		t.Cleanup(func() { p.Close(time.Now().Add(2 * time.Second)) })
		return p
	}
	prefixes := []string{"q", "holdfast", "with \"quotes\"\nand lines"}
	counts := func(s wire.Store, prefix string) bool {
		return do(t, s, "HEXISTS", prefix+":{%quorum}", "counts") == int64(1)
	}
	for _, prefix := range prefixes {
		founder := open(prefix, true)
		eventually(t, "all count", func() bool {
			if _, err := founder.Status(t.Context()); err != nil {
				t.Fatal(err)
			}
			return counts(servers[0], prefix) && counts(servers[1], prefix) && counts(servers[2], prefix)
		})
		quiet(t, founder) // it would let one that forgot count again
	}
	do(t, servers[0], "SAVE")
	if err := servers[0].(master).Server.Restart(); err != nil {
		t.Fatal(err)
	}
	for _, prefix := range prefixes {
		p := open(prefix, false)
		answer, err := p.Bind(protocol.Spec{Name: "x", Kind: protocol.Mutex}).Ask(t.Context(), ask(1))
		if err != nil {
			t.Fatal(err)
		}
		want(t, "two of three", answer, protocol.Held)
		nodes, err := p.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if nodes[0].Counts || nodes[0].Err != nil || !nodes[1].Counts || counts(servers[0], prefix) {
			t.Errorf("prefix %q: %v", prefix, nodes)
		}
	}
}
