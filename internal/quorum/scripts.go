package quorum

import (
	"embed"

	"github.com/holdfast-go/holdfast/internal/native"
)

//go:embed lua/*.lua
var files embed.FS

// A script is one operation at a node.
type script struct {
	op     string
	source string // as it is sent
	sha    any    // hex of its SHA-1; boxed once
}

// scripts are the operations. They are read when a Protocol is made, so that importing the package does nothing.
type scripts struct{ ask, downgrade, free, look, node, renew script }

func loadScripts() *scripts {
	load := func(op, name string) script { return script{op, native.Wire(files, name), digests[name]} }
	return &scripts{
		ask:       load("lock", "ask"),
		downgrade: load("downgrade", "downgrade"),
		free:      load("release", "free"),
		look:      load("look", "look"),
		node:      load("node", "node"),
		renew:     load("renew", "renew"),
	}
}
