package quorum

import (
	"embed"
	"errors"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/wire"
)

//go:embed lua/*.lua
var files embed.FS

// A script is one operation at a node.
type script struct {
	wire.Script
	at      int  // of its digest
	changes bool // it changes something at the node, so the node must have looked at its memory
}

// scripts are the operations. They are read when a Protocol is made, so importing the package does
// nothing.
type scripts struct {
	ask, breaks, downgrade, free, inspect, known, look, node, renew script

	digests atomic.Pointer[[]any] // hex of the SHA-1 of each; boxed once
}

// names are the files, in the order of the digests.
var names = []string{"ask", "break", "downgrade", "free", "inspect", "known", "look", "node", "renew"}

// usual is the prefix whose digests are constants.
const usual = "holdfast"

// source returns the text of a script. It names the prefix. A node that knows a script that changes
// something has looked at its memory for this prefix since it was started (node.lua). That says
// nothing of another prefix, whose facts may have come back from a snapshot.
func source(prefix, name string) string {
	return "-- " + strconv.QuoteToASCII(prefix) + "\n" + wire.Source(files, name, false)
}

func loadScripts(prefix string) *scripts {
	load := func(op, name string) script {
		return script{wire.Script{Op: op, Source: source(prefix, name)}, slices.Index(names, name),
			name != "inspect" && name != "known"}
	}
	s := &scripts{
		ask:       load("lock", "ask"),
		breaks:    load("break", "break"),
		downgrade: load("downgrade", "downgrade"),
		free:      load("release", "free"),
		inspect:   load("inspect", "inspect"),
		known:     load("list", "known"),
		look:      load("look", "look"),
		node:      load("node", "node"),
		renew:     load("renew", "renew"),
	}
	if prefix == usual {
		known := make([]any, len(names))
		for i, name := range names {
			known[i] = digests[name]
		}
		s.digests.Store(&known)
	}
	return s
}

// digestsOf asks a node for the digests of scripts, as SHA-1 is not computed here (trap 30).
const digestsOf = "local all = '' for _, source in ipairs(ARGV) do all = all .. redis.sha1hex(source) end return all"

var errDigests = errors.New("the node's answer is no list of digests")

// digests are those of the scripts. Those of an unusual prefix are asked for, once. The reply says
// why there are none.
func (n *node) digests(deadline time.Time) ([]any, *wire.Reply) {
	s := n.p.scripts
	if known := s.digests.Load(); known != nil {
		return *known, nil
	}
	args := []any{"EVAL", digestsOf, 0}
	for _, name := range names {
		args = append(args, source(n.p.config.Prefix, name))
	}
	key, _ := n.p.factsKey().(string)
	reply := n.sendCommand(s.node.Op, key, deadline, args)
	all, _ := reply.Value.(string)
	if reply.Err == nil && reply.Refused == "" && len(all) != 40*len(names) {
		reply.Err = errDigests
	}
	if reply.Err != nil || reply.Refused != "" {
		reply.Unsent = true // the script itself was not
		return nil, &reply
	}
	known := make([]any, len(names))
	for i := range known {
		known[i] = all[40*i : 40*i+40]
	}
	s.digests.Store(&known)
	return known, nil
}
