package native

import "embed"

//go:embed lua/*.lua
var files embed.FS

// A script is one operation at the server.
type script struct {
	op     string
	source string // as it is sent
	sha    any    // hex of its SHA-1; boxed once
	wins   bool   // what it answers is trusted, and so must not be lost
}

// scripts are the operations. They are read when a Protocol is made, so that importing the package does nothing.
type scripts struct{ ask, free, renew, resume, downgrade, resize, look, all, latch script }

func loadScripts() *scripts {
	return &scripts{
		ask:       script{"lock", wire("ask"), digests["ask"], true},
		free:      script{"release", wire("free"), digests["free"], false},
		renew:     script{"renew", wire("renew"), digests["renew"], true},
		resume:    script{"resume", wire("resume"), digests["resume"], true},
		downgrade: script{"downgrade", wire("downgrade"), digests["downgrade"], true},
		resize:    script{"resize", wire("resize"), digests["resize"], false},
		look:      script{"look", wire("look"), digests["look"], false},
		all:       script{"lock", wire("all"), digests["all"], true},
		latch:     script{"latch", wire("latch"), digests["latch"], false},
	}
}

// wire is the text of a script of this package as it goes over the wire.
func wire(name string) string { return Wire(files, name) }
