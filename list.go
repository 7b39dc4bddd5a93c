package holdfast

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/limits"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// listed is how many names List inspects at the same time.
const listed = 32

// ListOptions choose names; the zero ListOptions all. Of several conditions about a holder, one of
// the first 100 holds must meet all; a remainder counts as the hold that it was.
type ListOptions struct {
	Pattern   string        // a glob of Redis that the whole name matches; empty: all names
	Label     string        // only names with a holder of this label
	Process   string        // only names with a holder of this process: "host" or "host/pid"
	OlderThan time.Duration // only names with a holder that holds for longer
	Contended bool          // only names that somebody waits for
}

// List streams the names under Config.Prefix that are held, waited for or are latches, in any
// order. It reads the keys of every master by SCAN, in constant memory, and each name is told as
// Inspect tells it. A name may come twice. A name that is used for less than the time of List, or
// moves to another server meanwhile, may be missed. Of a quorum each name is told as all masters
// say; a minority that does not answer is no error.
//
// A key that begins as ours do and is none of ours comes with lockinfo.StateForeign, and its key as
// Name. What follows the prefix must match the pattern, and no other condition may be set.
//
// The stream ends after an error, which is as for Inspect. SCAN needs a permission of its own: a
// user with it sees the names of all keys of the server. Without it the error is of kind
// StoreDenied.
func (c *Client) List(ctx context.Context, options ListOptions) iter.Seq2[lockinfo.Info, error] {
	return func(yield func(lockinfo.Info, error) bool) {
		if err := options.check(ctx, c); err != nil {
			yield(lockinfo.Info{}, err)
			return
		}
		pattern := options.Pattern
		if pattern == "" {
			pattern = "*"
		}
		for info, err := range c.inspectAll(ctx, pattern) {
			if err != nil {
				yield(lockinfo.Info{}, err)
				return
			}
			if options.matches(info) && !yield(info, nil) {
				return
			}
		}
	}
}

// check refuses a call with bad arguments.
func (o ListOptions) check(ctx context.Context, c *Client) error {
	var bad problems
	bad.check(c != nil && c.engine != nil, "Client", nil, "made by New or NewQuorum")
	bad.check(ctx != nil, "ctx", nil, "not nil")
	bad.check(len(o.Pattern) <= limits.MaxText, "ListOptions.Pattern", shorten(o.Pattern), "at most 1 KiB")
	bad.check(len(o.Label) <= limits.MaxText, "ListOptions.Label", shorten(o.Label), "at most 1 KiB")
	_, pid, ofProcess := strings.Cut(o.Process, "/")
	number, err := strconv.Atoi(pid)
	bad.check(!ofProcess || err == nil && number > 0, "ListOptions.Process", shorten(o.Process), `"host" or "host/pid"`)
	bad.check(o.OlderThan >= 0, "ListOptions.OlderThan", o.OlderThan, "not negative")
	return bad.err("Client.List")
}

// inspectAll streams what Inspect tells of all names that match a pattern. Several names are
// inspected at a time, and none is kept once it was told.
func (c *Client) inspectAll(ctx context.Context, pattern string) iter.Seq2[lockinfo.Info, error] {
	type told struct {
		info lockinfo.Info
		err  error
	}
	return func(yield func(lockinfo.Info, error) bool) {
		whole := ctx
		ctx, cancel := context.WithCancel(ctx)
		found, out := make(chan protocol.FoundName), make(chan told)
		send := func(t told) bool {
			select {
			case out <- t:
				return true
			case <-ctx.Done():
				return false
			}
		}
		var scanning, inspecting sync.WaitGroup
		scanned := make(chan error, 1)
		scanning.Go(func() {
			defer close(found)
			scanned <- c.sendNames(ctx, pattern, found)
		})
		for range listed {
			inspecting.Go(func() {
				for name := range found {
					info, err := c.inspectFound(ctx, name)
					if !send(told{info, err}) {
						return
					}
				}
			})
		}
		var failed error // told last: what was found before is being inspected
		scanning.Go(func() {
			defer close(out)
			inspecting.Wait()
			if failed = <-scanned; failed != nil { // the scan may outlast those that inspect, if ctx ends
				send(told{err: failed})
			}
		})
		defer scanning.Wait()
		defer cancel()
		for t := range out {
			if !yield(t.info, t.err) {
				return
			}
		}
		if end := whole.Err(); end != nil { // it may have ended the goroutines before they could say so
			if !errors.Is(failed, end) {
				failed = operatorError("list", "", &engine.WaitFailure{Err: protocol.EndOf(whole)})
			}
			yield(lockinfo.Info{}, failed)
		}
	}
}

// sendNames sends the names that match a pattern to out, until ctx ends.
func (c *Client) sendNames(ctx context.Context, pattern string, out chan<- protocol.FoundName) error {
	for name, err := range c.engine.Names(ctx, pattern) {
		if err != nil {
			return operatorError("list", "", err)
		}
		select {
		case out <- name:
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// inspectFound returns what Inspect does of a name that was found. If the key is none of ours, it
// says so.
func (c *Client) inspectFound(ctx context.Context, found protocol.FoundName) (lockinfo.Info, error) {
	if found.Foreign != "" {
		return lockinfo.Info{Name: found.Foreign, Foreign: "the key of no lock"}, nil
	}
	return c.inspect(ctx, found.Name)
}

// matches reports whether a name meets the conditions.
func (o ListOptions) matches(info lockinfo.Info) bool {
	if o.Contended && info.Waiters == 0 {
		return false
	}
	if o.Label == "" && o.Process == "" && o.OlderThan == 0 {
		return info.State() != lockinfo.StateFree || len(info.Queue) > 0
	}
	return slices.ContainsFunc(info.Holds, func(h lockinfo.Hold) bool { return o.matchesHold(h, info.At) })
}

// matchesHold reports whether a hold meets all conditions about a holder.
func (o ListOptions) matchesHold(h lockinfo.Hold, now time.Time) bool {
	host, pid, ofProcess := strings.Cut(o.Process, "/")
	switch {
	case o.Label != "" && h.Label != o.Label:
		return false
	case o.Process != "" && h.Host != host, ofProcess && strconv.Itoa(h.PID) != pid:
		return false
	}
	return o.OlderThan == 0 || !h.Since.IsZero() && now.Sub(h.Since) > o.OlderThan
}
