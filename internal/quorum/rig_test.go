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
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/internal/wire"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// A master is a real server, asked without a client library.
type master struct{ *redisserver.Server }

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

// A subscription is to one channel.
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
	for range 6 { // *3 $9 subscribe $n channel :1
		lines.Scan()
	}
	s.all.Go(func() {
		for lines.Scan() {
			if strings.TrimSpace(lines.Text()) != "message" {
				continue
			}
			for range 4 { // $n channel $n text
				lines.Scan()
			}
			s.sink.Message(channel, strings.TrimSpace(lines.Text()))
		}
	})
	return lines.Err()
}

// Remove implements wire.Subscription.
func (*subscription) Remove(context.Context, string) error { return nil }

// Close implements wire.Subscription.
func (s *subscription) Close() error {
	err := s.conn.Close()
	s.all.Wait()
	return err
}

// start runs three masters.
func start(t *testing.T) []wire.Store {
	t.Helper()
	var servers []wire.Store
	for range 3 {
		servers = append(servers, master{redisserver.Start(t)})
	}
	return servers
}

// client makes a protocol as another process would.
func client(t *testing.T, servers []wire.Store, trust bool, id protocol.ID) *Protocol {
	p := New(servers, Config{Prefix: "q", Process: string(id), MaxTTL: time.Second, Trust: trust, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() { p.Close(time.Now().Add(2 * time.Second)) })
	return p
}

func id(n int) protocol.ID { return protocol.ID(fmt.Sprintf("id%020d", n)) }

// try asks once.
func try(t *testing.T, r protocol.Resource, n int) protocol.Answer {
	t.Helper()
	answer, err := r.Ask(t.Context(), ask(n))
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// ask is one that arrives in time, also on a slow machine, for a hold that does not end by itself
// while a test runs.
func ask(n int) protocol.Ask {
	return protocol.Ask{Ticket: protocol.Ticket{ID: id(n), Block: 1}, TTL: time.Minute, Deadline: time.Now().Add(enough)}
}

// enough is how long a request may take, on a machine that stands still now and then.
const enough = 10 * time.Second

// written is what a master keeps of a hold without owner and label, for a minute.
func written(mode string, first, last int64) string {
	return mode + wire.Digits16(time.Now().Add(time.Minute).UnixMilli())[3:] + wire.Digits16(first) + wire.Digits16(last) +
		wire.Digits16(1) + "60000:0:0:0:"
}

// want fails unless an ask has this outcome.
func want(t *testing.T, what string, got protocol.Answer, status protocol.Status) {
	t.Helper()
	if got.Status != status {
		t.Fatalf("%s: status %d, want %d", what, got.Status, status)
	}
}

// free gives back.
func free(t *testing.T, r protocol.Resource, n int) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), enough)
	defer cancel()
	was, err := r.Free(ctx, protocol.Free{Ticket: protocol.Ticket{ID: id(n), Block: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return was
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	late := time.After(30 * time.Second)
	for !holds() {
		select {
		case <-late:
			t.Fatalf("never: %s", what)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// quiet waits until nothing of a protocol is under way. An Ask, a Free or a Renew returns when a
// majority has answered: what is still to come to a master meets what a test has changed there
// since.
func quiet(t *testing.T, p *Protocol) {
	t.Helper()
	eventually(t, "nothing is under way", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.running == 0
	})
}

// warm lets all masters meet a protocol, and know the script that asks.
func warm(t *testing.T, p *Protocol) {
	t.Helper()
	want(t, "warm", try(t, p.Bind(protocol.Spec{Name: "warm", Kind: protocol.Mutex}), 1), protocol.Held)
	quiet(t, p)
}

// heardAt waits until a protocol listens at all masters: when Listen returns, at a majority.
func heardAt(t *testing.T, servers []wire.Store, p *Protocol) {
	t.Helper()
	for _, s := range servers {
		eventually(t, "a master knows the subscription", func() bool { return do(t, s, "PUBSUB", "NUMSUB", p.channel).([]any)[1] == int64(1) })
	}
}

// A nudges is a sink that remembers.
type nudges struct {
	mu     sync.Mutex
	ids    []protocol.ID
	afters []time.Duration // of each
	broken []protocol.ID
}

// Granted implements protocol.Sink.
func (*nudges) Granted(protocol.Grant) {}

// Gap implements protocol.Sink.
func (*nudges) Gap() {}

// Broken implements protocol.Sink.
func (n *nudges) Broken(id protocol.ID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.broken = append(n.broken, id)
}

// Nudge implements protocol.Sink.
func (n *nudges) Nudge(id protocol.ID, after time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ids, n.afters = append(n.ids, id), append(n.afters, after)
}

// last is when an id was last told to ask; false: it was not.
func (n *nudges) last(id protocol.ID) (after time.Duration, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, other := range n.ids {
		if other == id {
			after, ok = n.afters[i], true
		}
	}
	return after, ok
}

// breaks is how often the hold of an id was said to be broken.
func (n *nudges) breaks(id protocol.ID) (count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, other := range n.broken {
		if other == id {
			count++
		}
	}
	return count
}

func (n *nudges) count(id protocol.ID) (count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, other := range n.ids {
		if other == id {
			count++
		}
	}
	return count
}

// fields are what a master keeps of x: by id, and "-" before that of a remainder.
func fields(t *testing.T, s wire.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	words, _ := do(t, s, "HGETALL", "q:{%quorum}:x").([]any)
	for i := 0; i < len(words); i += 2 {
		all[words[i].(string)] = words[i+1].(string)
	}
	return all
}

// end is when a hold, or what is left of it, ends at its master, in its ms.
func end(t *testing.T, value string) int64 {
	t.Helper()
	if len(value) < 16 {
		t.Fatalf("no hold: %q", value)
	}
	at, _ := wire.Number(value[3:16])
	return at
}
