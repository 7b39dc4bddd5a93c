package native

import (
	"embed"
	"io/fs"
	"strings"
)

//go:embed lua/*.lua
var files embed.FS

// A script is one operation at the server.
type script struct {
	op     string
	name   string   // of its file
	source string   // as it is sent
	sha    any      // hex of its SHA-1; boxed once
	wins   bool     // what it answers is trusted, and so must not be lost
	keys   []string // what it calls its KEYS; many names have as many each
	first  []string // those that it reads before it writes anything for its caller; what it does for others is not meant
}

// scripts are the operations. They are read when a Protocol is made, so that importing the package does nothing.
type scripts struct{ ask, swap, free, renew, resume, downgrade, resize, look, all, latch script }

func loadScripts() *scripts {
	four := []string{"state", "clock", "line", "watchers"}
	load := func(op, name string, wins bool, keys []string, first ...string) script {
		return script{op, name, wire(name), digests[name], wins, keys, first}
	}
	return &scripts{
		ask:       load("lock", "ask", true, four, "clock", "line"), // the short way takes back what it wrote before it saw the clock
		swap:      load("lock", "ask", true, four),                  // an ask that gives another hold back first
		free:      load("release", "free", false, four, "line"),
		renew:     load("renew", "renew", true, []string{"key"}),
		resume:    load("resume", "resume", true, four, "line"),
		downgrade: load("downgrade", "downgrade", true, four),
		resize:    load("resize", "resize", false, four, "line"),
		look:      load("look", "look", false, four),
		all:       load("lock", "all", true, four[:3]),
		latch:     load("latch", "latch", false, []string{"state", "ids", "watchers"}, "ids"),
	}
}

// wire is the text of a script of this package as it goes over the wire.
func wire(name string) string { return Wire(files, name) }

// A line of a script, as it goes over the wire.
type line struct {
	text    string
	touched bool // when it runs, something may have been written already
}

// compose reads a script. The lines between "--@untouched" and "--@touched" run before anything is written.
func compose(files fs.FS, name string) (lines []line) {
	data, err := fs.ReadFile(files, "lua/"+name+".lua")
	if err != nil {
		panic("holdfast: script not embedded: " + err.Error()) // a broken build
	}
	touched := true
	for text := range strings.Lines(string(data)) {
		text = strings.TrimSpace(text)
		include, included := strings.CutPrefix(text, "--@include ")
		switch {
		case included:
			lines = append(lines, compose(files, include)...)
		case text == "--@untouched":
			touched = false
		case text == "--@touched":
			touched = true
		case text != "" && !strings.HasPrefix(text, "--"):
			lines = append(lines, line{text, touched})
		}
	}
	return lines
}
