package native

import (
	"embed"

	"github.com/holdfast-go/holdfast/internal/wire"
)

//go:embed lua/*.lua
var files embed.FS

type script struct {
	wire.Script
	trusted bool // its answer begins or prolongs trust, so as many replicas as Config says must have it
}

// scripts are the operations. They are read when a Protocol is made, so importing the package does
// nothing.
type scripts struct{ ask, swap, free, renew, downgrade, resize, look, inspect, all, latch, breaks, evict, tell script }

// loadScripts reads the scripts; with noEvict those that keep clocks and holds from eviction.
func loadScripts(noEvict bool) *scripts {
	four := []string{"state", "clock", "queue", "watchers"}
	load := func(op, name string, trusted bool, keys []string, first ...string) script {
		text := source(name, noEvict)
		return script{wire.Script{Op: op, Name: name, Source: text, Digest: digests[digestKey{name, noEvict}],
			Files: files, NoEvict: noEvict, Keys: keys, First: first}, trusted}
	}
	return &scripts{
		// The short way of ask takes back what it wrote before it saw the clock.
		ask: load("lock", "ask", true, four, "clock", "queue"),
		// An ask that gives another hold back first.
		swap:      load("lock", "ask", true, four),
		free:      load("release", "free", false, four, "queue"),
		renew:     load("renew", "renew", true, []string{"key"}),
		downgrade: load("downgrade", "downgrade", true, four),
		resize:    load("resize", "resize", false, four, "queue"),
		look:      load("look", "look", false, four),
		inspect:   load("inspect", "inspect", false, []string{"state", "queue"}, "state", "queue"),
		all:       load("lock", "all", true, four[:3]),
		breaks:    load("break", "break", false, four, "queue"),
		evict:     load("evict", "evict", false, four, "queue"),
		tell:      load("tell", "tell", false, four),
		latch:     load("latch", "latch", false, []string{"state", "ids", "watchers"}, "ids"),
	}
}

// source is the text of a script as it goes over the wire.
func source(name string, noEvict bool) string { return wire.Source(files, name, noEvict) }

// A digestKey names the text of a script.
type digestKey struct {
	name    string
	noEvict bool
}
