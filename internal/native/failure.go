package native

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/store"
)

// refusals are the error prefixes that mean something to us. They are the same on every server and version, while the
// texts behind them are not (traps 14, 45); inside a script some arrive as "ERR ... PREFIX ...".
var refusals = []struct {
	prefix string
	reason protocol.Reason
}{
	{"NOPERM", protocol.Denied},
	{"NOAUTH", protocol.Denied},
	{"WRONGPASS", protocol.Denied},
	{"Protocol error: unauthenticated", protocol.Denied}, // instead of NOAUTH, for more than ten arguments
	{"LOADING", protocol.Loading},
	{"READONLY", protocol.ReadOnly},
	{"OOM", protocol.OutOfMemory},
	{"NOREPLICAS", protocol.NoReplicas},
	{"MISCONF", protocol.Misconfigured},
	{"CLUSTERDOWN", protocol.ClusterDown},
	{"MASTERDOWN", protocol.ReadOnly},
	{"TRYAGAIN", protocol.ClusterDown},
	{"BUSY", protocol.NoAnswer},
	{"UNKILLABLE", protocol.NoAnswer},
}

// failure reads why a reply is none; nil when it is one. The request was about these keys, and no script of this package.
func (r *resource) failure(op string, reply store.Reply, keys ...any) error {
	return r.failureOf(&script{op: op}, reply, keys...)
}

// failureOf is failure, of a script with these KEYS.
func (r *resource) failureOf(s *script, reply store.Reply, keys ...any) error {
	return r.at(reply, r.reasonWhy(s, reply, keys))
}

// at names the server that was asked in an error about its reply, if it is known.
func (r *resource) at(reply store.Reply, err error) error {
	node := reply.Node
	if node == "" && r.p != nil {
		node = r.p.config.Node
	}
	var (
		failure *protocol.Failure
		foreign *protocol.Foreign
	)
	switch {
	case errors.As(err, &failure):
		failure.Node = node
	case errors.As(err, &foreign):
		foreign.Node = node
	}
	return err
}

func (r *resource) reasonWhy(s *script, reply store.Reply, keys []any) error {
	switch {
	case reply.Refused != "":
		b := s.blame(reply.Refused)
		if foreign, names := r.foreignKey(s, reply.Refused, b, keys); foreign != nil {
			if !b.begun || s.before(names) {
				return foreign
			}
			return &protocol.Failure{Op: s.op, Name: r.spec.Name, Reason: protocol.ForeignKey, Unknown: true, Err: errors.New(foreign.Text())}
		}
		failure := &protocol.Failure{Op: s.op, Name: r.spec.Name, Reason: reasonOf(reply.Refused), Err: errors.New(reply.Refused)}
		switch failure.Reason {
		case protocol.Denied:
			failure.Unknown = b.begun
			if len(b.commands) > 0 {
				failure.Err = fmt.Errorf("%s: %w", strings.Join(slices.Compact(b.commands), " or "), failure.Err)
			}
		case protocol.Other:
			failure.Unknown = b.begun
			if (is(reply.Refused, "MOVED") || is(reply.Refused, "CROSSSLOT")) && r.p != nil && r.p.shape.alone() {
				failure.Err = fmt.Errorf("the client takes a cluster for a single server, as some do that may not ask for the slots (+cluster|slots): %w", failure.Err)
			}
		}
		return failure // the others are said of the first write, before it
	case reply.Err != nil:
		reason := protocol.Unreachable
		switch {
		case !isEnd(reply.Err) && reasonOf(reply.Err.Error()) == protocol.Denied:
			// Not the request was refused, but what the store asked before or behind it.
			reason = protocol.Denied
		case !reply.Unsent && isTimeout(reply.Err):
			reason = protocol.NoAnswer
		}
		return &protocol.Failure{Op: s.op, Name: r.spec.Name, Reason: reason, Unknown: !reply.Unsent, Err: reply.Err}
	}
	return nil
}

// foreignKey is what a refusal says of a key that is of another type, or of a clock that is none, and what the script calls the
// keys that it can be about; nil when it says something else.
func (r *resource) foreignKey(s *script, refused string, b blamed, keys []any) (*protocol.Foreign, []string) {
	_, text, _ := strings.Cut(refused, "holdfast: the key ")
	if key, _, ok := strings.Cut(text, " holds no token of ours"); ok {
		return &protocol.Foreign{Op: s.op, Name: r.spec.Name, Key: key, Is: "something else", Want: "a fencing token"}, []string{"clock"}
	}
	if !is(refused, "WRONGTYPE") {
		return nil, nil
	}
	var found []string
	for i, key := range keys {
		if text, ok := key.(string); ok && (len(b.keys) == 0 || slices.Contains(b.keys, s.keys[i%len(s.keys)])) {
			found = append(found, text)
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	return &protocol.Foreign{Op: s.op, Name: r.spec.Name, Key: found[0], Or: found[1:], Is: "of another type", Want: "a lock's"}, b.keys
}

func reasonOf(refused string) protocol.Reason {
	for _, known := range refusals {
		if is(refused, known.prefix) {
			return known.reason
		}
	}
	switch lower := strings.ToLower(refused); {
	case strings.Contains(lower, "unknown command"), strings.Contains(lower, "unknown redis command"):
		return protocol.Unsupported
	case strings.Contains(lower, "can't run this command or subcommand"), strings.Contains(lower, "no permission"),
		strings.Contains(lower, "no permissions"):
		return protocol.Denied // Redis 7 hides NOPERM behind ERR inside a script
	}
	return protocol.Other
}

// is tells whether an error line is of a kind: by its first word, or, where a script wrapped it, by the first word
// behind "ERR " or "-".
func is(refused, prefix string) bool {
	if wrapped, ok := strings.CutPrefix(refused, "ERR Error running script"); ok { // Redis 6.2, KeyDB: where it happened comes first
		if at := strings.LastIndex(wrapped, "@user_script:"); at >= 0 {
			refused = strings.TrimLeft(wrapped[at+len("@user_script:"):], " 0123456789:")
		}
	}
	refused = strings.TrimPrefix(refused, "ERR ")
	refused = strings.TrimPrefix(refused, "-")
	return strings.HasPrefix(refused, prefix)
}

func isUnknownScript(refused string) bool { return refused != "" && is(refused, "NOSCRIPT") }

// isEnd tells the end of a context, whose cause may say anything.
func isEnd(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.As(err, &timeout) && timeout.Timeout()
}
