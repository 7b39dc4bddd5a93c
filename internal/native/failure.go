package native

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/holdfast-go/holdfast/internal/protocol"
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

// failure reads why a reply is none; nil when it is one.
func (r *resource) failure(op string, reply Reply) error {
	switch {
	case reply.Refused != "":
		commands, begun := blame(reply.Refused)
		if is(reply.Refused, "WRONGTYPE") && !begun {
			return &protocol.Foreign{Op: op, Name: r.spec.Name, Key: r.keys.state.(string), Is: "of another type",
				Want: "a lock's"}
		}
		failure := &protocol.Failure{Op: op, Name: r.spec.Name, Reason: reasonOf(reply.Refused), Err: errors.New(reply.Refused)}
		switch failure.Reason {
		case protocol.Denied:
			failure.Unknown = begun
			if commands != "" {
				failure.Err = fmt.Errorf("%s: %w", commands, failure.Err)
			}
		case protocol.Other:
			failure.Unknown = begun
			if (is(reply.Refused, "MOVED") || is(reply.Refused, "CROSSSLOT")) && r.p != nil && r.p.shape.alone() {
				failure.Err = fmt.Errorf("the client takes a cluster for a single server, as some do that may not ask for the slots (+cluster|slots): %w", failure.Err)
			}
		}
		return failure // the others are said of the first write, before it
	case reply.Err != nil:
		reason := protocol.Unreachable
		switch {
		case reasonOf(reply.Err.Error()) == protocol.Denied: // not the request, but what the store asked before or behind it
			reason = protocol.Denied
		case !reply.Unsent && isTimeout(reply.Err):
			reason = protocol.NoAnswer
		}
		return &protocol.Failure{Op: op, Name: r.spec.Name, Reason: reason, Unknown: !reply.Unsent, Err: reply.Err}
	}
	return nil
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

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.As(err, &timeout) && timeout.Timeout()
}
