package wire

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

//go:embed lua/ready.lua
var probeFiles embed.FS

// probeDigest is the SHA-1 of lua/ready.lua as it goes over the wire. A test checks it.
const probeDigest = "4f6b14545e59fe340a2c44b509a8e5eabc47ed5f"

// bless begins the commands that keep keys from eviction.
const bless = "BLESS"

// BlessRequest asks a server to keep a key from eviction. If no client ever writes the key, it
// changes nothing, and CannotBless reads from the reply whether the server could.
func BlessRequest(op, key string) Request {
	return Request{Op: op, Args: []any{bless, "SET", key, "NO-EVICT"}, Key: key}
}

// CannotBless reports whether a reply to BlessRequest says that the server lacks the command, or
// refuses it to this user.
func CannotBless(reply Reply) bool {
	reason := reasonOf(reply.Refused)
	return reason == protocol.Unsupported || reason == protocol.Denied
}

// Probe asks every master behind a store whether it can serve, and changes nothing. It returns a
// failure for the first master that cannot, and nil if all can. KeyIn returns a key in a slot. No
// client may ever write it. The deadline of ctx bounds Probe.
//
// A server can serve if it runs scripts that write, sent whole and by their digest, and if it says
// of no policy that evicts keys. A server that refuses to tell its policy can serve. With noEvict
// every policy will do, and the server must be able to keep keys from eviction.
func Probe(ctx context.Context, s Store, keyIn func(slot int) string, noEvict bool) error {
	t, err := describeSoon(ctx, s)
	if err != nil {
		return probed("", Reply{Err: err}, nil)
	}
	targets := targetsOf(t)
	if len(targets) == 0 {
		return &protocol.Failure{Op: probeOp, Reason: protocol.ClusterDown,
			Err: errors.New("no master of the cluster serves a slot")}
	}
	failures := make([]error, len(targets))
	var all sync.WaitGroup
	for i, target := range targets {
		all.Go(func() { failures[i] = probe(ctx, s, target, keyIn(target.slot), noEvict) })
	}
	all.Wait()
	for _, err := range failures {
		if err != nil {
			return err
		}
	}
	return nil
}

// describeSoon is Describe in half of the time. A node of a cluster that is silent then costs no
// more, and the other half shows which node it is.
func describeSoon(ctx context.Context, s Store) (Topology, error) {
	if end, bounded := ctx.Deadline(); bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/2)
		defer cancel()
	}
	return s.Describe(ctx)
}

const probeOp = "ready"

// A probeTarget is a master to ask, by a key in a slot that it serves.
type probeTarget struct {
	node     string // its id; empty: where the routing of the client leads
	slot     int
	eviction string
}

func targetsOf(t Topology) (targets []probeTarget) {
	if !t.Cluster {
		var target probeTarget
		for _, n := range t.Nodes {
			if n.Role != "replica" && n.Eviction != "" {
				target.eviction = n.Eviction
			}
		}
		return []probeTarget{target}
	}
	for _, n := range t.Nodes {
		if len(n.Slots) > 0 && n.Role != "replica" {
			targets = append(targets, probeTarget{n.ID, n.Slots[0].From, n.Eviction})
		}
	}
	return targets
}

func probe(ctx context.Context, s Store, target probeTarget, key string, noEvict bool) error {
	script := &Script{Op: probeOp, Name: "ready", Source: Source(probeFiles, "ready", false), Digest: probeDigest,
		Files: probeFiles, Keys: []string{"probe"}}
	words := []any{nil, nil, 1, key}
	replies := s.Do(ctx, []Request{
		{Op: probeOp, Args: script.Whole(words), Key: key, Node: target.node},
		{Op: probeOp, Args: script.ByDigest(words), Key: key, Node: target.node},
	})
	for _, reply := range replies {
		if IsUnknownScript(reply) { // somebody flushed the scripts in between
			continue
		}
		if err := probed(reply.Node, reply, script); err != nil {
			return err
		}
		if reply.Value != "ready" {
			return At(reply.Node, &protocol.Failure{Op: probeOp, Reason: protocol.Other,
				Err: fmt.Errorf("the answer is none of ours: %.100v", reply.Value)})
		}
	}
	if noEvict {
		request := BlessRequest(probeOp, key)
		request.Node = target.node
		if reply := s.Do(ctx, []Request{request})[0]; reply.Err != nil || CannotBless(reply) {
			return probed(reply.Node, reply, script)
		}
		return nil
	}
	if target.eviction != "" && target.eviction != "noeviction" {
		return At(replies[0].Node, &protocol.Failure{Op: probeOp, Reason: protocol.Evicts,
			Err: fmt.Errorf("maxmemory is set, and maxmemory-policy is %s, not noeviction", target.eviction)})
	}
	return nil
}

// probed returns the failure that a reply tells of; nil if it is an answer. A probe takes no
// effect, whatever became of it.
func probed(node string, reply Reply, script *Script) error {
	if script == nil {
		script = &Script{Op: probeOp}
	}
	err := script.Failure("", reply, nil)
	var failure *protocol.Failure
	if errors.As(err, &failure) {
		failure.Unknown = false
	}
	return At(node, err)
}
