package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/store"
)

// errLate is about a request whose process stood still from its making to its sending.
var errLate = fmt.Errorf("its time was over before it could be sent: %w", context.DeadlineExceeded)

// refusals are the error prefixes that mean something to us. They are the same on every server and
// version, while the texts behind them are not (traps 14, 45). Inside a script some arrive as
// "ERR ... PREFIX ...".
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
	{"UNBLOCKED", protocol.ReadOnly}, // a WAIT whose master has become a replica
	{"TRYAGAIN", protocol.ClusterDown},
	{"BUSY", protocol.NoAnswer},
	{"UNKILLABLE", protocol.NoAnswer},
}

// Failure returns the error that a reply to the script tells of: a *protocol.Failure or a
// *protocol.Foreign. It is nil if the reply is an answer. The request was about this name and these
// keys.
func (s *Script) Failure(name string, reply Reply, keys []any) error {
	switch {
	case reply.Refused != "":
		return s.refusal(name, reply.Refused, keys)
	case reply.Err != nil:
		return &protocol.Failure{Op: s.Op, Name: name, Reason: unansweredReason(reply), Unknown: !reply.Unsent,
			Err: reply.Err}
	}
	return nil
}

// refusal reads the error line of a server.
func (s *Script) refusal(name, refused string, keys []any) error {
	b := s.blame(refused)
	if foreign, names := s.foreignKey(name, refused, b, keys); foreign != nil {
		if !b.begun || s.readsFirst(names) {
			return foreign
		}
		return &protocol.Failure{Op: s.Op, Name: name, Reason: protocol.ForeignKey, Unknown: true,
			Err: errors.New(foreign.Text())}
	}
	failure := &protocol.Failure{Op: s.Op, Name: name, Reason: reasonOf(refused), Err: errors.New(refused)}
	switch failure.Reason {
	case protocol.Denied:
		failure.Unknown = b.begun
		if len(b.commands) > 0 {
			failure.Err = fmt.Errorf("%s: %w", strings.Join(slices.Compact(b.commands), " or "), failure.Err)
		}
	case protocol.Unsupported:
		switch {
		case lacksEngine(refused):
			failure.Err = fmt.Errorf("the server has no script engine: %w", failure.Err)
		case slices.Contains(b.commands, bless) || strings.Contains(strings.ToUpper(refused), bless):
			failure.Unknown = b.begun
			failure.Err = fmt.Errorf("the server cannot keep keys from eviction, as Redis can from 8.12 on: %w",
				failure.Err)
		}
	case protocol.Other:
		failure.Unknown = b.begun
	case protocol.ReadOnly:
		failure.Err = fmt.Errorf("the connection led to a replica, and the next request takes a new one: %w",
			failure.Err)
	}
	return failure // a server raises the others at the first write, before it
}

// unansweredReason returns why no answer came.
func unansweredReason(reply Reply) protocol.Reason {
	switch {
	case !isEnd(reply.Err) && reasonOf(reply.Err.Error()) == protocol.Denied:
		// The server refused what the store asked before or behind the request.
		return protocol.Denied
	case !reply.Unsent && isTimeout(reply.Err):
		return protocol.NoAnswer
	case reply.Unsent && (errors.Is(reply.Err, errLate) || errors.As(reply.Err, new(*store.PoolError))):
		return protocol.NotSent
	}
	return protocol.Unreachable
}

// foreignKey reads a refusal that is about a key of another type, or about a clock that holds no
// token. It returns what the script calls the keys that the refusal can be about. It is nil if the
// refusal is about something else.
func (s *Script) foreignKey(name, refused string, b blamedLine, keys []any) (*protocol.Foreign, []string) {
	_, text, _ := strings.Cut(refused, "holdfast: the key ")
	if key, _, ok := strings.Cut(text, " holds no token of ours"); ok {
		return &protocol.Foreign{Op: s.Op, Name: name, Key: key, Found: "something else", Want: "a fencing token"},
			[]string{"clock"}
	}
	if !startsWith(refused, "WRONGTYPE") {
		return nil, nil
	}
	var found []string
	for i, key := range keys {
		if text, ok := key.(string); ok && (len(b.keys) == 0 || slices.Contains(b.keys, s.Keys[i%len(s.Keys)])) {
			found = append(found, text)
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	return &protocol.Foreign{Op: s.Op, Name: name, Key: found[0], Alternatives: found[1:], Found: "of another type",
		Want: "that of this kind of lock"}, b.keys
}

// SubscribeFailure reads why there is no subscription to a channel, as Script.Failure reads
// replies.
func SubscribeFailure(channel string, err error) error {
	failure := &protocol.Failure{Op: "subscribe", Name: channel, Reason: protocol.Unreachable, Err: err}
	if reason := reasonOf(err.Error()); reason != protocol.Other {
		failure.Reason = reason
	}
	return failure
}

// At names the server in an error about its reply, if it was asked, and returns the error.
func At(server string, err error) error {
	if err == nil {
		return nil
	}
	var (
		failure *protocol.Failure
		foreign *protocol.Foreign
	)
	switch {
	case errors.As(err, &failure):
		if failure.Reason != protocol.NotSent { // no server was asked
			failure.Node = server
		}
	case errors.As(err, &foreign):
		foreign.Node = server
	}
	return err
}

// IsMisrouted reports whether a server refused because it has only some of the slots.
func IsMisrouted(reply Reply) bool {
	return startsWith(reply.Refused, "MOVED") || startsWith(reply.Refused, "CROSSSLOT")
}

// reasonOf returns the reason that the words of a server give.
func reasonOf(refused string) protocol.Reason {
	for _, known := range refusals {
		if startsWith(refused, known.prefix) {
			return known.reason
		}
	}
	switch lower := strings.ToLower(refused); {
	case strings.Contains(lower, "unknown command"), strings.Contains(lower, "unknown redis command"),
		lacksEngine(refused):
		return protocol.Unsupported
	case strings.Contains(lower, "can't run this command or subcommand"), strings.Contains(lower, "no permission"),
		strings.Contains(lower, "no permissions"):
		return protocol.Denied // Redis 7 hides NOPERM behind ERR inside a script
	}
	return protocol.Other
}

// lacksEngine reports whether a server refused because it runs no scripts: Valkey 9.1 without its
// module "lua", or a service without EVAL.
func lacksEngine(refused string) bool {
	_, command, _ := strings.Cut(strings.ToLower(refused), "unknown command ")
	return strings.HasPrefix(strings.TrimLeft(command, "'`"), "eval") ||
		startsWith(refused, "Could not find scripting engine")
}

// startsWith reports whether an error line is of a kind: by its first word, or, where a script
// wrapped it, by the first word behind "ERR " or "-".
func startsWith(refused, prefix string) bool {
	// Redis 6.2 and KeyDB say first where it happened.
	if wrapped, ok := strings.CutPrefix(refused, "ERR Error running script"); ok {
		if at := strings.LastIndex(wrapped, "@user_script:"); at >= 0 {
			refused = strings.TrimLeft(wrapped[at+len("@user_script:"):], " 0123456789:")
		}
	}
	refused = strings.TrimPrefix(refused, "ERR ")
	refused = strings.TrimPrefix(refused, "-")
	return strings.HasPrefix(refused, prefix)
}

// isEnd tells the end of a context, whose cause may say anything.
func isEnd(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.As(err, &timeout) && timeout.Timeout()
}

// isDialing reports whether an error came before there was a connection.
func isDialing(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// A refusal that a script raised ends the script where it is: what it wrote before stays. Servers
// say the number of the line, and some say nothing else.

// A blamedLine is the line of a script that raised a refusal, as far as it is known.
type blamedLine struct {
	commands []string // those of the line: one, as a rule
	keys     []string // of each command, as the script calls it
	begun    bool     // something may have been written before
}

// blame reads from a refusal which line raised it. If no script raised it, nothing was written.
func (s *Script) blame(refused string) blamedLine {
	const mark = "@user_script:"
	at := strings.LastIndex(refused, mark)
	if at < 0 {
		return blamedLine{}
	}
	number := 0
	if _, err := fmt.Sscan(refused[at+len(mark):], &number); err != nil || s.Name == "" {
		return blamedLine{begun: true}
	}
	lines := compose(s.Files, s.Name, s.NoEvict)
	if number < 1 || number > len(lines) {
		return blamedLine{begun: true}
	}
	l := lines[number-1]
	commands, keys := l.calls()
	return blamedLine{commands, keys, l.touched}
}

// calls returns the commands of a line that may raise an error, and the word behind each command:
// its key, by a name of Script.Keys.
func (l sourceLine) calls() (commands, keys []string) {
	for _, call := range strings.Split(l.text, "redis.call('")[1:] {
		words := strings.FieldsFunc(call, func(c rune) bool { return !unicode.IsLetter(c) })
		commands = append(commands, words[0])
		if len(words) > 1 {
			keys = append(keys, words[1])
		}
	}
	return commands, keys
}

// Unnamed returns the lines with a command whose key the script does not call by one of Keys: of
// those a refusal could not say which key it is about. A test of each format checks that there are
// none.
func (s *Script) Unnamed() (lines []string) {
	for _, l := range compose(s.Files, s.Name, s.NoEvict) {
		commands, keys := l.calls()
		if slices.Equal(commands, []string{"TIME"}) {
			continue
		}
		if len(keys) != len(commands) || slices.ContainsFunc(keys, func(key string) bool {
			return !slices.Contains(s.Keys, key)
		}) {
			lines = append(lines, l.text)
		}
	}
	return lines
}

// readsFirst reports whether the script reads these keys before it writes anything for its caller.
// A key keeps its type from the start of a script to its end, so a key of another type was found
// then.
func (s *Script) readsFirst(keys []string) bool {
	for _, key := range keys {
		if !slices.Contains(s.First, key) {
			return false
		}
	}
	return len(keys) > 0
}
