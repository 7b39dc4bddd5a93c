package wire

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/store"
)

// runBubble runs a part of a test on a fake clock.
func runBubble(t *testing.T, part string, f func(t *testing.T)) {
	t.Helper()
	t.Run(part, func(t *testing.T) { synctest.Test(t, f) })
}

// A fakeStore is a store whose servers do what a test says. Its cluster has nodes a:1, b:1 and so
// on.
type fakeStore struct {
	// answer answers the commands of one Do, if it is not nil; else the answer is "OK".
	answer func(node string, commands []store.Command) []store.Reply

	mu        sync.Mutex
	cluster   bool
	owners    []string      // by slot, in equal shares
	met       []string      // what Nodes says
	unmet     []string      // what Refresh adds
	refreshed []string      // keys
	renewed   []string      // nodes
	renewal   time.Duration // what one takes
	sent      []string      // "node: COMMAND args; COMMAND args"
	listeners []*fakeListener
	says      func(l *fakeListener, channel string) string // to a question; empty: yes
}

const silence = "silence" // what says says of a question that gets no answer

var errNoNode = errors.New("no such node")

// newFake makes a cluster of nodes, or, of none, a single server.
func newFake(nodes ...string) *fakeStore {
	return &fakeStore{cluster: len(nodes) > 0, owners: nodes, met: slices.Clone(nodes)}
}

func (f *fakeStore) change(how func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	how()
}

func (f *fakeStore) Do(_ context.Context, node string, commands []store.Command) []store.Reply {
	replies := make([]store.Reply, len(commands))
	f.mu.Lock()
	if f.cluster && !slices.Contains(f.met, node) {
		f.mu.Unlock()
		for i := range replies {
			replies[i] = store.Reply{Err: errNoNode, Unsent: true}
		}
		return replies
	}
	if len(commands) == 1 && fmt.Sprint(commands[0]) == "[CLUSTER SLOTS]" {
		defer f.mu.Unlock()
		return []store.Reply{{Value: f.slots()}}
	}
	var words []string
	for i, c := range commands {
		words = append(words, strings.Trim(fmt.Sprint([]any(c)), "[]"))
		replies[i].Value = "OK"
	}
	f.sent = append(f.sent, node+": "+strings.Join(words, "; "))
	answer := f.answer
	f.mu.Unlock()
	if answer != nil {
		return answer(node, commands)
	}
	return replies
}

func (f *fakeStore) slots() []any {
	var ranges []any
	for i, owner := range f.owners {
		host, _, _ := strings.Cut(owner, ":")
		from, to := i*Slots/len(f.owners), (i+1)*Slots/len(f.owners)-1
		ranges = append(ranges, []any{int64(from), int64(to), []any{host, int64(1), "id-" + owner}})
	}
	return ranges
}

func (f *fakeStore) Nodes(context.Context) (store.Nodes, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return store.Nodes{Cluster: f.cluster, Addresses: slices.Clone(f.met)}, nil
}

func (f *fakeStore) Refresh(_ context.Context, key string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refreshed = append(f.refreshed, key)
	f.met, f.unmet = append(f.met, f.unmet...), nil
	return nil
}

func (f *fakeStore) Renew(node string) {
	f.mu.Lock()
	f.renewed = append(f.renewed, node)
	f.mu.Unlock()
	if f.renewal > 0 {
		<-time.After(f.renewal)
	}
}

func (f *fakeStore) Listen(_ context.Context, node string, sharded bool, events store.Events) (store.Listener, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := &fakeListener{Events: events, f: f, node: node, sharded: sharded}
	f.listeners = append(f.listeners, l)
	return l, nil
}

// A fakeListener is a connection for messages, on which a test may let the server speak.
type fakeListener struct {
	store.Events
	f       *fakeStore
	node    string
	sharded bool
	asked   []string // "+channel" and "-channel"
	closed  bool
}

func (l *fakeListener) Subscribe(_ context.Context, channels ...string) error {
	return l.ask("+", channels, l.Subscribed)
}

func (l *fakeListener) Unsubscribe(_ context.Context, channels ...string) error {
	return l.ask("-", channels, l.Unsubscribed)
}

func (l *fakeListener) ask(sign string, channels []string, yes func(string)) error {
	for _, channel := range channels {
		l.f.mu.Lock()
		l.asked = append(l.asked, sign+channel)
		line := ""
		if l.f.says != nil {
			line = l.f.says(l, channel)
		}
		l.f.mu.Unlock()
		switch line {
		case "":
			yes(channel)
		case silence:
		default:
			l.Refused(channel, line)
		}
	}
	return nil
}

func (l *fakeListener) Close() {
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	l.closed = true
}

// open returns the connections that are not closed, by node.
func (f *fakeStore) open() (list []*fakeListener) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.listeners {
		if !l.closed {
			list = append(list, l)
		}
	}
	return list
}

// asked returns the questions on a connection.
func (f *fakeStore) asked(l *fakeListener) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(l.asked)
}

// requests returns what was sent, but for questions about slots.
func (f *fakeStore) requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.sent)
}

// A recordingSink is a Sink that notes what it is told.
type recordingSink struct {
	mu    sync.Mutex
	notes []string
}

func (n *recordingSink) Message(channel, payload string) { n.note(channel + "=" + payload) }
func (n *recordingSink) Gap()                            { n.note("gap") }

func (n *recordingSink) note(what string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.notes = append(n.notes, what)
}

func (n *recordingSink) all() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.notes, " ")
}

// TestMain fails when a goroutine is left behind (trap 33).
func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }
