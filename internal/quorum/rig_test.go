package quorum

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/testing/eventually"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/internal/wire"
)

func TestMain(m *testing.M) {
	left := leak.Watch()
	code := m.Run()
	for _, s := range masters.idle {
		_ = s.Close()
	}
	if left := left(); code == 0 && left != "" {
		fmt.Fprintf(os.Stderr, "goroutines left behind:\n\n%s\n", left)
		code = 1
	}
	os.Exit(code)
}

// masters are servers that no test uses. They are started when they are needed, and serve one test
// after the other.
var masters struct {
	mu   sync.Mutex
	idle []*redisserver.Server
}

// A master is a real server, asked without a client library.
type master struct{ *redisserver.Server }

// startMaster returns an empty master, for the time of a test.
func startMaster(t *testing.T) master {
	t.Helper()
	masters.mu.Lock()
	defer masters.mu.Unlock()
	if len(masters.idle) == 0 {
		s, err := redisserver.Run(t.Context())
		fatal.If(t, err)
		masters.idle = append(masters.idle, s)
	}
	last := len(masters.idle) - 1
	s := master{masters.idle[last]}
	masters.idle = masters.idle[:last]
	t.Cleanup(func() {
		masters.mu.Lock()
		defer masters.mu.Unlock()
		masters.idle = append(masters.idle, s.Server)
	})
	do(t, s, "FLUSHALL")
	do(t, s, "SCRIPT", "FLUSH")
	return s
}

// start returns three masters.
func start(t *testing.T) []wire.Store {
	t.Helper()
	return []wire.Store{startMaster(t), startMaster(t), startMaster(t)}
}

// startClient returns three masters, and a client of them.
func startClient(t *testing.T) (servers []wire.Store, p *Protocol) {
	t.Helper()
	servers = start(t)
	return servers, client(t, servers, true, id(0))
}

// startTwo returns three masters, and the clients of two processes.
func startTwo(t *testing.T) (servers []wire.Store, p, other *Protocol) {
	t.Helper()
	servers, p = startClient(t)
	return servers, p, client(t, servers, true, id(7))
}

// startGated returns three masters, a gate before each, and a client behind these.
func startGated(t *testing.T) (servers []wire.Store, all []*gate, p *Protocol) {
	t.Helper()
	servers = start(t)
	all, behind := gates(servers)
	return servers, all, client(t, behind, true, id(0))
}

// Do implements wire.Store.
func (m master) Do(_ context.Context, requests []wire.Request) []wire.Reply {
	replies := make([]wire.Reply, len(requests))
	for i, request := range requests {
		value, err := m.Server.Do(request.Args...)
		if _, network := err.(net.Error); err != nil && !network && !errors.Is(err, io.EOF) {
			replies[i].Refused = err.Error()
		} else {
			replies[i] = wire.Reply{Value: value, Err: err}
		}
	}
	return replies
}

// Subscribe implements wire.Store.
func (m master) Subscribe(_ context.Context, sink wire.Sink) (wire.Subscription, error) {
	conn, err := net.Dial("tcp", m.Addr())
	if err != nil {
		return nil, err
	}
	return &subscription{conn: conn, sink: sink}, nil
}

// Describe implements wire.Store.
func (master) Describe(context.Context) (wire.Topology, error) { return wire.Topology{}, nil }

type subscription struct {
	conn net.Conn
	sink wire.Sink
	all  sync.WaitGroup
}

// Add implements wire.Subscription.
func (s *subscription) Add(_ context.Context, channel string) error {
	if _, err := fmt.Fprintf(s.conn, "*2\r\n$9\r\nSUBSCRIBE\r\n$%d\r\n%s\r\n", len(channel), channel); err != nil {
		return err
	}
	lines := bufio.NewScanner(s.conn)
	skip := func(n int) bool {
		for range n {
			lines.Scan()
		}
		return lines.Scan()
	}
	if !skip(5) { // *3 $9 subscribe $n channel :1
		return lines.Err()
	}
	s.all.Go(func() {
		for skip(6) { // *3 $7 message $n channel $n text
			s.sink.Message(channel, lines.Text())
		}
	})
	return nil
}

// Remove implements wire.Subscription.
func (*subscription) Remove(context.Context, string) error { return nil }

// Close implements wire.Subscription.
func (s *subscription) Close() error {
	err := s.conn.Close()
	s.all.Wait()
	return err
}

// open makes a protocol. The test ends when nothing of it is under way any more: its masters serve
// the next test.
func open(t *testing.T, stores []wire.Store, config Config) *Protocol {
	t.Helper()
	if config.Prefix == "" {
		config.Prefix = "q"
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	p := New(stores, config)
	t.Cleanup(func() {
		p.Close(time.Now().Add(2 * time.Second))
		waitQuiet(t, p)
	})
	return p
}

// client makes a protocol as another process would.
func client(t *testing.T, stores []wire.Store, trust bool, id protocol.ID) *Protocol {
	t.Helper()
	return open(t, stores, Config{Process: string(id), MaxTTL: time.Second, Trust: trust})
}

func id(n int) protocol.ID { return protocol.ID(fmt.Sprintf("id%020d", n)) }

func mutexOf(p *Protocol) *resource { return ownedBy(p, "") }

// ownedBy returns the mutex x for an owner.
func ownedBy(p *Protocol, owner string) *resource {
	return p.bind(protocol.Spec{Name: "x", Kind: protocol.Mutex, Owner: owner, Life: time.Minute})
}

func readerOf(p *Protocol, owner string) *resource {
	return p.bind(protocol.Spec{Name: "x", Kind: protocol.ReadWrite, Shared: true, Owner: owner, Life: time.Minute})
}

func writerOf(p *Protocol, owner string) *resource {
	return p.bind(protocol.Spec{Name: "x", Kind: protocol.ReadWrite, Owner: owner, Life: time.Minute})
}

// ask is one that arrives in time, also on a slow machine, for a hold that does not end by itself
// while a test runs.
func ask(n int) protocol.Ask {
	return protocol.Ask{Ticket: protocol.Ticket{ID: id(n), Block: 1}, TTL: time.Minute,
		Deadline: time.Now().Add(enough)}
}

// enough is how long a request may take, on a machine that stands still now and then.
const enough = 10 * time.Second

// yield asks, and gives the hold of another ticket back in the same request.
func yield(n, before int) protocol.Ask {
	yields := ask(n)
	yields.Release = &protocol.Ticket{ID: id(before), Block: 1}
	return yields
}

func mustAsk(t *testing.T, r protocol.Resource, ask protocol.Ask) protocol.Answer {
	t.Helper()
	answer, err := r.Ask(t.Context(), ask)
	fatal.If(t, err)
	return answer
}

func tryAsk(t *testing.T, r protocol.Resource, n int) protocol.Answer {
	t.Helper()
	return mustAsk(t, r, ask(n))
}

// join asks, and waits if others hold.
func join(t *testing.T, r protocol.Resource, n int) protocol.Answer {
	t.Helper()
	asks := ask(n)
	asks.Join = true
	return mustAsk(t, r, asks)
}

// breakNode breaks a hold at one node alone, for the Break with an id.
func breakNode(t *testing.T, r *resource, node, breaker int, b protocol.Break) {
	t.Helper()
	if a := r.breakAt(r.p.nodes[node], id(breaker), b, time.Now().Add(enough)); a.err != nil {
		t.Fatal(a.err)
	}
}

// want fails unless an ask has this outcome.
func want(t *testing.T, what string, got protocol.Answer, status protocol.Status) {
	t.Helper()
	if got.Status != status {
		t.Fatalf("%s: status %d, want %d", what, got.Status, status)
	}
}

// hold takes a lock for long, at all masters.
func hold(t *testing.T, r *resource, servers []wire.Store, n int) protocol.Answer {
	t.Helper()
	answer := tryAsk(t, r, n)
	want(t, "hold", answer, protocol.Held)
	until(t, "all masters know of the hold", func() bool {
		return countAll(t, servers, "HEXISTS", "q:{%quorum}:x", string(id(n))) == int64(len(servers))
	})
	waitQuiet(t, r.p) // where the first round was refused its token, another may yet set it anew
	return answer
}

// freeKeeping gives back, with a min hold unless keep is 0.
func freeKeeping(t *testing.T, r *resource, n int, keep time.Duration) (was bool, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), enough)
	defer cancel()
	request := protocol.FreeRequest{Ticket: ask(n).Ticket}
	if keep > 0 {
		request.Keep = r.p.micros(time.Now().Add(keep))
	}
	return r.Free(ctx, request)
}

func free(t *testing.T, r *resource, n int) bool {
	t.Helper()
	was, err := freeKeeping(t, r, n, 0)
	fatal.If(t, err)
	return was
}

// renewOnce renews the hold of a ticket.
func renewOnce(t *testing.T, p *Protocol, renewal protocol.Renewal) (answer protocol.RenewalAnswer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), enough)
	defer cancel()
	p.Renew(ctx, []protocol.Renewal{renewal}, func(_ int, r protocol.RenewalAnswer) { answer = r })
	return answer
}

// renew renews with success, and waits until all masters have answered.
func renew(t *testing.T, p *Protocol, renewal protocol.Renewal) {
	t.Helper()
	if r := renewOnce(t, p, renewal); !r.Held || r.Err != nil {
		t.Errorf("renewed: %+v", r)
	}
	until(t, "the renewal ends", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.repairs) == 0
	})
}

func renewalOf(r *resource, n int, token int64) protocol.Renewal {
	return protocol.Renewal{Resource: r, Ticket: ask(n).Ticket, Token: token, TTL: time.Minute}
}

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	eventually.Must(t, 30*time.Second, what, holds)
}

// waitQuiet waits until nothing of a protocol is under way. An Ask, a Free or a Renew returns when
// a majority has answered: what is still to come to a master meets what a test has changed there
// since.
func waitQuiet(t *testing.T, p *Protocol) {
	t.Helper()
	until(t, "nothing is under way", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.running == 0
	})
}

// status asks all masters what they know of themselves.
func status(t *testing.T, p *Protocol) []protocol.Node {
	t.Helper()
	nodes, err := p.Status(t.Context())
	fatal.If(t, err)
	return nodes
}

// warm lets all masters meet a protocol, and know the scripts that ask and free.
func warm(t *testing.T, p *Protocol) {
	t.Helper()
	r := p.bind(protocol.Spec{Name: "warm", Kind: protocol.Mutex})
	want(t, "warm", tryAsk(t, r, 1), protocol.Held)
	waitQuiet(t, p)
	free(t, r, 1)
	waitQuiet(t, p)
}

// do sends a command to a master, past the gate.
func do(t *testing.T, s wire.Store, args ...any) any {
	t.Helper()
	if g, ok := s.(*gate); ok {
		s = g.Store
	}
	value, err := s.(master).Server.Do(args...)
	fatal.If(t, err)
	return value
}

// doAll sends a command to all masters.
func doAll(t *testing.T, servers []wire.Store, args ...any) {
	t.Helper()
	for _, s := range servers {
		do(t, s, args...)
	}
}

// countAll adds up what all masters answer to a command.
func countAll(t *testing.T, servers []wire.Store, args ...any) (sum int64) {
	t.Helper()
	for _, s := range servers {
		n, _ := do(t, s, args...).(int64)
		sum += n
	}
	return sum
}

// restart makes a master one that was started since, from a snapshot of now: it knows no scripts,
// and its run id is not the one that it wrote down.
func restart(t *testing.T, s wire.Store, prefixes ...string) {
	t.Helper()
	do(t, s, "SCRIPT", "FLUSH")
	for _, prefix := range prefixes {
		do(t, s, "HSET", prefix+":{%quorum}", "run", strings.Repeat("b", 40))
	}
}

// holdValue returns what a master keeps of a hold without owner and label, for a minute.
func holdValue(mode string, first, last int64) string {
	return holdValueUntil(mode, time.Now().Add(time.Minute), first, last)
}

func holdValueUntil(mode string, end time.Time, first, last int64) string {
	return mode + wire.Digits16(end.UnixMilli())[3:] + wire.Digits16(first) + wire.Digits16(last) + wire.Digits16(1) +
		"60000:0:0:0:"
}

// put writes a hold into masters.
func put(t *testing.T, n int, value string, servers ...wire.Store) {
	t.Helper()
	doAll(t, servers, "HSET", "q:{%quorum}:x", string(id(n)), value)
}

// fields returns what a master keeps of x: by id, and "-" before that of a remainder.
func fields(t *testing.T, s wire.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	words, _ := do(t, s, "HGETALL", "q:{%quorum}:x").([]any)
	for i := 0; i < len(words); i += 2 {
		all[words[i].(string)] = words[i+1].(string)
	}
	return all
}

// value returns what a master keeps of a hold.
func value(t *testing.T, s wire.Store, n int) string {
	t.Helper()
	return fields(t, s)[string(id(n))]
}

// knows reports whether a master keeps a hold.
func knows(t *testing.T, s wire.Store, n int) bool {
	t.Helper()
	return value(t, s, n) != ""
}

// untilFree waits until no master keeps a hold. It would be there for a minute.
func untilFree(t *testing.T, servers []wire.Store, n int) {
	t.Helper()
	until(t, "all is given back", func() bool {
		return countAll(t, servers, "HEXISTS", "q:{%quorum}:x", string(id(n))) == 0
	})
}

// end returns when a hold, or what is left of it, ends at its master, in its ms.
func end(t *testing.T, value string) int64 {
	t.Helper()
	if len(value) < 16 {
		t.Fatalf("no hold: %q", value)
	}
	at, _ := wire.Number(value[3:16])
	return at
}

// A heard is a sink that remembers.
type heard struct {
	mu     sync.Mutex
	nudges map[protocol.ID][]time.Duration
	breaks map[protocol.ID]int
}

// listen opens a subscription at all masters. Listen returns when a majority is subscribed.
func listen(t *testing.T, servers []wire.Store, p *Protocol) *heard {
	t.Helper()
	h := &heard{nudges: map[protocol.ID][]time.Duration{}, breaks: map[protocol.ID]int{}}
	listening, err := p.Listen(t.Context(), h)
	fatal.If(t, err)
	t.Cleanup(listening.Close)
	for _, s := range servers {
		until(t, "a master knows the subscription", func() bool {
			return do(t, s, "PUBSUB", "NUMSUB", p.channel).([]any)[1] == int64(1)
		})
	}
	return h
}

// Granted implements protocol.Sink.
func (*heard) Granted(protocol.Grant) {}

// Gap implements protocol.Sink.
func (*heard) Gap() {}

// Recall implements protocol.Sink.
func (*heard) Recall(protocol.ID) {}

// Broken implements protocol.Sink.
func (h *heard) Broken(id protocol.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.breaks[id]++
}

// Nudge implements protocol.Sink.
func (h *heard) Nudge(id protocol.ID, after time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.nudges[id] = append(h.nudges[id], after)
}

// of returns when an id was told to ask, each time, and how often its hold was said to be broken.
func (h *heard) of(n int) (nudges []time.Duration, breaks int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.nudges[id(n)], h.breaks[id(n)]
}

// A logger remembers what it was told.
type logger struct {
	mu   sync.Mutex
	text strings.Builder
}

// newLogger makes a logger, and what a protocol takes.
func newLogger() (*logger, *slog.Logger) {
	l := new(logger)
	return l, slog.New(slog.NewTextHandler(l, nil))
}

// Write implements io.Writer.
func (l *logger) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

// String returns all lines.
func (l *logger) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logger) count(text string) int { return strings.Count(l.String(), text) }
