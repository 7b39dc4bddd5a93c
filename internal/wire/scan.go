package wire

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

const (
	scanOp = "list"

	// scanCount is how many keys a server looks at for one SCAN. More would cost fewer round trips,
	// and hold up the requests of locks for longer.
	scanCount = 500
)

// Scan streams the keys that match a glob pattern, of every master behind a store, one master after
// the other. It keeps no more than the answer to one SCAN. A key that is there all the time is told
// at least once, any other perhaps. Each request has so much time. The last that is told may be
// a failure. So it is when ctx ends, at once.
//
// Slots that move meanwhile, and a fail-over to a server that orders its keys otherwise, can hide
// keys.
func Scan(ctx context.Context, s Store, pattern string, timeout time.Duration) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		described, ok := Await(ctx, func() (d description) {
			asking, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			d.Topology, d.err = s.Describe(asking)
			return d
		})
		if !ok {
			described.err = protocol.EndOf(ctx)
		}
		if described.err != nil {
			yield("", scanned(Reply{Err: described.err}))
			return
		}
		for _, node := range mastersOf(described.Topology) {
			if !scanNode(ctx, s, node, pattern, timeout, yield) {
				return
			}
		}
	}
}

// A description is the answer to Store.Describe.
type description struct {
	Topology
	err error
}

// Await returns the answer to a request. It is false if ctx ends first: a store may ignore that.
// Then the request goes on until its deadline, and its answer is dropped.
func Await[T any](ctx context.Context, request func() T) (answer T, ok bool) {
	answers := make(chan T, 1)
	go func() { answers <- request() }()
	select {
	case answer = <-answers:
		return answer, true
	case <-ctx.Done():
		return answer, false
	}
}

// Ask sends one request, which has so much time. It returns when ctx ends, at the latest.
func Ask(ctx context.Context, s Store, request Request, timeout time.Duration) Reply {
	reply, ok := Await(ctx, func() Reply {
		asking, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		return s.Do(asking, []Request{request})[0]
	})
	if !ok {
		return Reply{Err: protocol.EndOf(ctx), Node: request.Node}
	}
	return reply
}

// mastersOf returns the masters to scan, by id. An empty id is where the routing of the client
// leads.
func mastersOf(t Topology) (ids []string) {
	for _, target := range targetsOf(t) {
		ids = append(ids, target.node)
	}
	if t.Cluster || len(t.Nodes) < 2 {
		return ids
	}
	for _, n := range t.Nodes { // a fail-over must not lead to another server with the cursor of this one
		if n.Role == "master" {
			return []string{n.ID}
		}
	}
	return ids
}

// scanNode scans one master. It is false if nothing is to be told any more.
func scanNode(ctx context.Context, s Store, node, pattern string, timeout time.Duration,
	yield func(string, error) bool) bool {
	for cursor := "0"; ; {
		if ctx.Err() != nil {
			yield("", scanned(Reply{Err: protocol.EndOf(ctx), Unsent: true, Node: node}))
			return false
		}
		reply := Ask(ctx, s, Request{Op: scanOp, Args: []any{"SCAN", cursor, "MATCH", pattern, "COUNT", scanCount},
			Node: node}, timeout)
		keys, next, ok := scanReply(reply)
		if err := scanned(reply); err != nil || !ok {
			if err == nil {
				err = At(reply.Node, &protocol.Failure{Op: scanOp, Reason: protocol.Other,
					Err: fmt.Errorf("the answer is none of ours: %.100v", reply.Value)})
			}
			yield("", err)
			return false
		}
		for _, key := range keys {
			if key, ok := key.(string); ok && !yield(key, nil) {
				return false
			}
		}
		if cursor = next; cursor == "0" {
			return true
		}
	}
}

// scanReply reads the answer to SCAN.
func scanReply(reply Reply) (keys []any, cursor string, ok bool) {
	parts, _ := reply.Value.([]any)
	if len(parts) != 2 {
		return nil, "", false
	}
	cursor, ok1 := parts[0].(string)
	keys, ok2 := parts[1].([]any)
	return keys, cursor, ok1 && ok2
}

// scanned returns the failure that a reply tells of; nil if it is an answer.
func scanned(reply Reply) error {
	err := (&Script{Op: scanOp}).Failure("", reply, nil)
	var failure *protocol.Failure
	if errors.As(err, &failure) {
		failure.Unknown = false // it takes no effect
		if failure.Reason == protocol.Denied && reply.Refused != "" {
			failure.Err = fmt.Errorf("a list needs the permission of SCAN (+scan), and Inspect does not: %w",
				failure.Err)
		}
	}
	return At(reply.Node, err)
}
