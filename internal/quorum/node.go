package quorum

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// A node is one of the independent masters.
type node struct {
	p     *Protocol
	index int
	store wire.Store
	*wire.Batcher
	clock clock

	server string               // what its server is known by; empty: nothing yet. The protocol's mutex guards it
	twin   atomic.Pointer[node] // see facts.same

	mu              sync.Mutex // guards all below
	counts          bool
	reported        bool      // the logger was, of what counts says
	reportedAt      time.Time // when it was: an answer to what was sent before may be older than that
	adopting        bool
	adopted         time.Time // when it was last tried
	revoked         int64     // the birth of a memory that ended holds early, until the node has been told
	revoking        bool
	same            *node // that was reported, for the same server; nil: none
	pendingAsks     map[protocol.ID]*pendingAsks
	pendingReleases map[string][]*pendingRelease // by name: releases on their way
	pendingCleanups []cleanup
	cleaning        bool
	cleanupAdded    chan struct{}
}

// Facts are what a node said of itself.
type facts struct {
	now, born int64
	server    string // what its server is known by; empty: it does not say
	counts    bool   // by its own record
	last      int64
	// Ahead: its clock was set forward since its memory began, as far as is known, and it has not
	// been told yet.
	ahead bool
	same  *node // another node, at which the same server was seen first; nil: none
}

// age returns how long ago the node's memory began, by its own clock.
func (f facts) age() time.Duration { return time.Duration(f.now-f.born) * time.Microsecond }

// sameAs names the other node at which the same server was seen first; empty: there is none.
func (f facts) sameAs() string {
	if f.same == nil {
		return ""
	}
	return nodeName(f.same.index)
}

const (
	serverSize = 16
	headSize   = 1 + 16 + 16 + serverSize + 1 + 16
)

var nameless = strings.Repeat("0", serverSize)

// readHead reads the facts in front of a reply, and returns what is behind them.
func readHead(text string) (f facts, rest string, ok bool) {
	if len(text) < headSize {
		return f, "", false
	}
	var oks [3]bool
	f.now, oks[0] = wire.Number(text[1:17])
	f.born, oks[1] = wire.Number(text[17:33])
	if f.server = text[33 : 33+serverSize]; f.server == nameless {
		f.server = ""
	}
	f.counts = text[33+serverSize] == '1'
	f.last, oks[2] = wire.Number(text[34+serverSize : headSize])
	return f, text[headSize:], oks[0] && oks[1] && oks[2]
}

// execScript sends a script by its digest, and whole where the node does not know it. Such a node
// has done nothing, so sending again is no repetition. But it may have been started since, so a
// node that does not know the script "node" either is told to look at its memory first, if the
// script changes something. A client that finds any such script there can be sure that some client
// has done that.
func (n *node) execScript(s *script, deadline time.Time, args []any) wire.Reply {
	key, _ := args[3].(string)
	digests, none := n.digests(deadline)
	if none != nil {
		return *none
	}
	args[0], args[1] = "EVALSHA", digests[s.at]
	reply := n.sendCommand(s.Op, key, deadline, args)
	if !wire.IsUnknownScript(reply) {
		return reply
	}
	if !s.changes {
		return n.sendCommand(s.Op, key, deadline, s.Whole(args))
	}
	census := &n.p.scripts.node
	factsKey, _ := n.p.factsKey().(string)
	longest := n.p.config.MaxTTL.Milliseconds()
	if s != census {
		reply = n.sendCommand(census.Op, factsKey, deadline, []any{"EVALSHA", digests[census.at], 1, factsKey,
			"", "", "", longest, string(protocol.NewID())})
	}
	if wire.IsUnknownScript(reply) {
		reply = n.sendCommand(census.Op, factsKey, deadline, []any{"EVAL", census.Source, 1, factsKey, "", "", "s",
			longest, string(protocol.NewID())})
	}
	if reply.Err != nil || reply.Refused != "" {
		reply.Unsent = true // the script itself was not
		return reply
	}
	return n.sendCommand(s.Op, key, deadline, s.Whole(args))
}

// sendCommand sends one command about a key. Nobody can cancel it: the client cleans up what it may
// win.
func (n *node) sendCommand(op, key string, deadline time.Time, args []any) wire.Reply {
	return n.Do(context.Background(), wire.Request{Op: op, Args: args, Key: key}, deadline)
}

// askScript sends a script and reads the text of its reply. An error is a *protocol.Failure or a
// *protocol.Foreign.
func (n *node) askScript(s *script, name string, deadline time.Time, args []any) (string, error) {
	reply := n.execScript(s, deadline, args)
	if err := s.Failure(name, reply, wire.KeysIn(args)); err != nil {
		return "", wire.At(nodeName(n.index), err)
	}
	text, _ := reply.Value.(string)
	if text == "" {
		return "", n.unreadable(s.Op, name, reply.Value)
	}
	if text[0] == 'F' {
		key, _ := args[3].(string)
		return "", &protocol.Foreign{Op: s.Op, Name: name, Node: nodeName(n.index), Key: key, Found: text[1:],
			Want: "what a quorum keeps of this kind"}
	}
	return text, nil
}

// query sends a script, and reads its reply with the facts that it begins with.
func (n *node) query(s *script, name string, deadline time.Time, args []any, read func(*reply, string) bool) *reply {
	out, sent := &reply{node: n}, time.Now()
	text, err := n.askScript(s, name, deadline, args)
	switch {
	case err != nil:
		out.err = err
	case !read(out, text):
		out = &reply{node: n, err: n.unreadable(s.Op, name, text)}
	default:
		out.counts = n.judgeFacts(&out.facts, sent, time.Now(), deadline)
	}
	return out
}

// queryInTime is query for a script that takes no effect after the deadline. Words makes the
// command, with the last time of the node at which it may. The request may be late, by a clock that
// was set since or has drifted over a long silence. Then the node is asked what its clock shows,
// and asked once more.
func (n *node) queryInTime(s *script, name string, deadline time.Time, words func(notAfter string) []any,
	read func(*reply, string) bool) *reply {
	for again := false; ; again = true {
		notAfter, err := n.notAfter(deadline)
		if err != nil {
			return &reply{node: n, err: err}
		}
		late := false
		out := n.query(s, name, deadline, words(notAfter), func(a *reply, text string) bool {
			if late = text[0] == 'L'; late {
				return false
			}
			return read(a, text)
		})
		if !late {
			return out
		}
		if again || !time.Now().Before(deadline) {
			return &reply{node: n, err: n.noAnswer(s.Op, name, errTooLate)}
		}
		if _, err := n.meet(deadline, "", ""); err != nil {
			return &reply{node: n, err: err}
		}
	}
}

func (n *node) unreadable(op, name string, value any) error {
	return &protocol.Failure{Op: op, Name: name, Node: nodeName(n.index), Reason: protocol.Other, Unknown: true,
		Err: fmt.Errorf("the node's answer is none of ours: %.100v", value)}
}

// meet asks the node for its facts, if need be with what makes it count.
func (n *node) meet(deadline time.Time, born, floor string) (facts, error) {
	f, sent, err := n.askFacts(deadline, born, floor, "")
	if err == nil {
		n.judgeFacts(&f, sent, time.Now(), deadline)
	}
	return f, err
}

// askFacts asks the question of meet. It leaves the clock of the answer to the caller: see
// judgeFacts. The argument how is that of node.lua.
func (n *node) askFacts(deadline time.Time, born, floor, how string) (f facts, sent time.Time, err error) {
	sent = time.Now()
	text, err := n.askScript(&n.p.scripts.node, "", deadline, []any{nil, nil, 1, n.p.factsKey(), born, floor, how,
		n.p.config.MaxTTL.Milliseconds(), string(protocol.NewID())})
	if err != nil {
		return facts{}, sent, err
	}
	f, rest, ok := readHead(text)
	longest, number := wire.Number(rest)
	if !ok || !number {
		return f, sent, n.unreadable("node", "", text)
	}
	learn(&n.p.floor, f.last)
	learn(&n.p.longest, longest)
	n.p.identifyServer(n, &f)
	return f, sent, nil
}

// notAfter returns the last time of the node at which a request with this deadline may take effect.
func (n *node) notAfter(deadline time.Time) (string, error) {
	if at, ok := n.clock.NotAfter(deadline); ok {
		return at, nil
	}
	if _, err := n.meet(deadline, "", ""); err != nil {
		return "", err
	}
	at, _ := n.clock.NotAfter(deadline)
	return at, nil
}

// identifyServer notes which server gave an answer of a node. The facts then say at which other
// node that server was seen before, if it was. An answer that does not name its server is of the
// one that is known.
func (p *Protocol) identifyServer(n *node, f *facts) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f.server != "" && f.server != n.server {
		if p.servers[n.server] == n {
			delete(p.servers, n.server)
		}
		n.server = f.server
	}
	if n.server == "" {
		return
	}
	first := p.servers[n.server]
	if first == nil {
		p.servers[n.server] = n
	} else if first != n {
		f.same = first
	}
	n.twin.Store(f.same)
}

// judgeFacts takes what an answer said of the node, and reports whether the node counts. If the
// clock seems to have been set forward, it asks the others. If they have not answered by the
// deadline, the node does not count by this answer.
func (n *node) judgeFacts(f *facts, sent, received, deadline time.Time) bool {
	n.p.identifyServer(n, f)
	known := !n.clock.forward(f.now, f.born, sent, received, leap) || f.same != nil ||
		n.checkClock(*f, sent, received, deadline)
	n.mu.Lock()
	revoked := f.born != 0 && f.born == n.revoked
	f.ahead = revoked || !known
	counts := n.p.counts(*f)
	first := !n.reported
	report := n.noteCounts(counts, f.same, sent)
	adopt := n.beginAdopting(*f)
	revoke := revoked && !n.revoking
	if revoke {
		n.revoking = true
	}
	n.mu.Unlock()
	switch {
	case report && !counts:
		n.p.config.Logger.Warn("holdfast: a node does not count", "node", nodeName(n.index), "reason", n.p.whyNot(*f))
	case report && !first:
		n.p.config.Logger.Info("holdfast: a node counts again", "node", nodeName(n.index))
	}
	if adopt {
		n.p.startWorker(func() { n.p.adopt(n, f.born) })
	}
	if revoke {
		n.p.startWorker(func() { n.revoke(f.born) })
	}
	return counts
}

// noteCounts notes whether the node counts, or is another one as well, by an answer to what was
// sent at a time. It reports whether that is to be reported. mu is held.
func (n *node) noteCounts(counts bool, same *node, sent time.Time) (report bool) {
	report = !n.reported || (n.counts != counts || n.same != same) && !sent.Before(n.reportedAt)
	if report {
		n.counts, n.same, n.reported, n.reportedAt = counts, same, true, time.Now()
	}
	return report
}

// beginAdopting reports whether the caller is to adopt the node, by what the node said. mu is held.
func (n *node) beginAdopting(f facts) bool {
	old := n.p.config.Trust || f.age() >= n.p.memory()
	if f.counts || f.ahead || f.same != nil || !old || n.adopting || time.Since(n.adopted) <= 100*time.Millisecond {
		return false
	}
	n.adopting = true
	return true
}

// counts reports whether the node that said this counts. A server counts at the node where it was
// seen first.
func (p *Protocol) counts(f facts) bool {
	return (f.counts || p.config.Trust) && !f.ahead && f.same == nil
}

// memory returns how long a node that forgot does not count: the longest TTL that any client is
// known to be allowed.
func (p *Protocol) memory() time.Duration {
	return max(p.config.MaxTTL, time.Duration(p.longest.Load())*time.Millisecond)
}

// whyNot says why a node does not count.
func (p *Protocol) whyNot(f facts) string {
	switch {
	case f.same != nil:
		return "it is the same server as " + f.sameAs()
	case f.ahead:
		return "its clock seems to have been set forward, so it may have ended a hold early"
	}
	age, left := f.age().Round(time.Millisecond), (p.memory() - f.age()).Round(time.Millisecond)
	if left <= 0 {
		return fmt.Sprintf("its memory began %v ago, and it has not yet been told the tokens of a majority that counts", age)
	}
	return fmt.Sprintf("its memory began %v ago, so it may have forgotten a hold; it counts in %v", age, left)
}
