// Package states makes names in every state, for tests of what shows them. The clock of the servers
// stands still, so the names stay as they are until the test is over.
package states

import (
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// A Server is one server whose clock stands still.
type Server struct {
	Client  func(config *holdfast.Config, dial Dial) *holdfast.Client // makes a client as another process has it
	Command func(args ...any)                                         // sends a command of an operator
	Ahead   func(step time.Duration)                                  // sets the clock forward
}

// A Dial connects to the server.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// A gate lets what comes from a server pass. Once it is shut, what is sent does not arrive.
type gate struct{ shut atomic.Bool }

func (g *gate) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	return gatedConn{conn, g}, err
}

type gatedConn struct {
	net.Conn
	gate *gate
}

// Write implements net.Conn.
func (c gatedConn) Write(text []byte) (int, error) {
	if c.gate.shut.Load() {
		return len(text), nil
	}
	return c.Conn.Write(text)
}

// Bytes is a name that is no UTF-8, and that a terminal must not be shown.
const Bytes = "bytes\xff\x1b[2J"

// hostile is a label that a terminal must not be shown.
const hostile = "evil\x1b]0;x\a\u202e<b>"

// A maker makes names, until one cannot be made.
type maker struct {
	testing.TB
	Server
	ctx     context.Context
	waiting sync.WaitGroup
	made    map[string]lockinfo.State
}

// Make makes names at a server, and returns them with their states.
func Make(tb testing.TB, s Server) map[string]lockinfo.State {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	m := &maker{TB: tb, Server: s, ctx: ctx, made: map[string]lockinfo.State{}}
	tb.Cleanup(m.waiting.Wait)
	tb.Cleanup(cancel)
	m.late() // sets the clock forward, while nobody else holds
	a, b := m.client("web@a"), m.client(hostile)
	m.mutexes(a, b)
	m.remainders(a, b)
	m.handedOver(a)
	m.others(a, b)
	m.foreign()
	return m.made
}

func (m *maker) client(label string) *holdfast.Client {
	return m.Client(&holdfast.Config{Label: label}, new(gate).dial)
}

// cutClient makes a client that can be cut off: then its requests do not arrive, and messages come.
func (m *maker) cutClient(label string) (client *holdfast.Client, cut func()) {
	g := new(gate)
	return m.Client(&holdfast.Config{Label: label, ReleaseTimeout: 100 * time.Millisecond}, g.dial), func() {
		g.shut.Store(true)
	}
}

func (m *maker) is(name string, state lockinfo.State) { m.made[name] = state }

// must ends the test after an error.
func (m *maker) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

func (m *maker) lease(lease *holdfast.Lease, err error) *holdfast.Lease {
	m.Helper()
	m.must(err)
	return lease
}

// wait lets a call wait for a name until the test is over, and returns when it stands in the queue.
func (m *maker) wait(client *holdfast.Client, name string, lock func(context.Context) (*holdfast.Lease, error)) {
	m.Helper()
	before, err := client.Inspect(m.ctx, name)
	m.must(err)
	m.waiting.Go(func() { _, _ = lock(m.ctx) })
	m.until(client, name, func(info lockinfo.Info) bool {
		return info.Waiters > before.Waiters && info.Queue[len(info.Queue)-1].Alive == lockinfo.AliveYes
	})
}

func (m *maker) until(client *holdfast.Client, name string, as func(lockinfo.Info) bool) {
	m.Helper()
	for late := time.Now().Add(30 * time.Second); ; <-time.After(5 * time.Millisecond) {
		info, err := client.Inspect(m.ctx, name)
		if err == nil && as(info) {
			return
		}
		if time.Now().After(late) {
			m.Fatalf("%q is %+v, %v", name, info, err)
		}
	}
}

// late: its process is cut off, and more than half a TTL is over.
func (m *maker) late() {
	client, cut := m.cutClient("cron@b")
	m.lease(client.Mutex("late", holdfast.WithTTL(5*time.Minute)).TryLock(m.ctx))
	cut()
	m.Ahead(3 * time.Minute)
	m.is("late", lockinfo.StateHeld)
}

// mutexes are held, with waiters, with a name of bytes, by an owner, and not renewed.
func (m *maker) mutexes(a, b *holdfast.Client) {
	m.lease(a.Mutex("order:42").TryLock(m.ctx))
	m.is("order:42", lockinfo.StateHeld)
	under := m.lease(b.Mutex(Bytes).TryLock(m.ctx))
	m.is(Bytes, lockinfo.StateHeld)
	m.wait(a, "order:42", func(ctx context.Context) (*holdfast.Lease, error) {
		ctx, end := under.Bind(ctx)
		defer end()
		return b.Mutex("order:42", holdfast.WithDeadlockCheck()).Lock(ctx)
	})
	_, err := a.Mutex("order:42").Ticket(m.ctx, 10*time.Minute)
	m.must(err)
	m.lease(a.Mutex("fixed", holdfast.WithoutRenewal(), holdfast.WithOwner("team a")).TryLock(m.ctx))
	m.is("fixed", lockinfo.StateHeld)
	m.lease(a.Mutex(strings.Repeat("long", 200)).TryLock(m.ctx))
	m.is(strings.Repeat("long", 200), lockinfo.StateHeld)
}

// remainders keep others out.
func (m *maker) remainders(a, b *holdfast.Client) {
	minHold := a.Mutex("min hold", holdfast.WithMinHold(time.Minute), holdfast.WithTTL(time.Minute))
	m.must(minHold.Do(m.ctx, func(context.Context) error { return nil }))
	m.is("min hold", lockinfo.StateMinHold)
	lease := m.lease(a.Mutex("broken").TryLock(m.ctx))
	m.must(b.Break(m.ctx, "broken", lease.Token()))
	m.is("broken", lockinfo.StateBroken)
}

// handedOver: the waiter's process was cut off when it became the holder.
func (m *maker) handedOver(a *holdfast.Client) {
	lease := m.lease(a.Mutex("handed over").TryLock(m.ctx))
	waiter, cut := m.cutClient("waiter")
	m.wait(a, "handed over", waiter.Mutex("handed over").Lock)
	cut()
	m.must(lease.Release())
	m.is("handed over", lockinfo.StateHandedOver)
}

// others are of the other kinds.
func (m *maker) others(a, b *holdfast.Client) {
	m.lease(a.RWMutex("read").RLock(m.ctx))
	m.lease(b.RWMutex("read").RLock(m.ctx))
	m.wait(a, "read", a.RWMutex("read").Lock)
	m.lease(a.RWMutex("written").TryLock(m.ctx))
	m.lease(b.Election("elected").TryCampaign(m.ctx))
	m.lease(a.Semaphore("permits", 5).TryAcquire(m.ctx, 2))
	m.lease(b.Semaphore("permits", 5).TryAcquire(m.ctx, 1))
	for _, name := range []string{"read", "written", "elected", "permits"} {
		m.is(name, lockinfo.StateHeld)
	}

	// Kept places alone: nobody holds, and nobody waits.
	type join = func(context.Context, time.Duration) (holdfast.Ticket, error)
	keep := func(name string, lease *holdfast.Lease, place join) {
		_, err := place(m.ctx, 10*time.Minute)
		m.must(err)
		m.must(lease.Release())
		m.is(name, lockinfo.StateFree)
	}
	const mutex, semaphore, rwMutex = "kept place of a mutex", "kept place of a semaphore", "kept place of a rwmutex"
	keep(mutex, m.lease(a.Mutex(mutex).TryLock(m.ctx)), b.Mutex(mutex).Ticket)
	keep(semaphore, m.lease(a.Semaphore(semaphore, 2).TryAcquire(m.ctx, 2)),
		func(ctx context.Context, keep time.Duration) (holdfast.Ticket, error) {
			return b.Semaphore(semaphore, 2).Ticket(ctx, 1, keep)
		})
	keep(rwMutex, m.lease(a.RWMutex(rwMutex).TryLock(m.ctx)), b.RWMutex(rwMutex).RTicket)
	m.must(a.Latch("set").Set(m.ctx, 3))
	m.is("set", lockinfo.StateSet)
	m.must(a.Latch("open").Set(m.ctx, 1))
	m.must(a.Latch("open").CountDown(m.ctx))
	m.is("open", lockinfo.StateOpen)
}

// foreign are keys of other programs: where a lock's would be, and where no lock's can be.
func (m *maker) foreign() {
	m.Command("SET", "holdfast:{foreign text}", "nothing of ours")
	m.Command("RPUSH", "holdfast:{foreign list}", "x")
	m.Command("SET", "holdfast:no lock", "x")
	for _, name := range []string{"foreign text", "foreign list", "holdfast:no lock"} {
		m.is(name, lockinfo.StateForeign)
	}
}

// MakeAtQuorum makes names at the masters of a quorum, and returns them with their states. Command
// sends a command to the first master. The name "nobody's" is used by nobody.
func MakeAtQuorum(tb testing.TB, client func(label string) *holdfast.Client,
	command func(args ...any)) map[string]lockinfo.State {
	tb.Helper()
	m := &maker{TB: tb, ctx: context.Background(), made: map[string]lockinfo.State{}}
	a, b := client("web@a"), client(hostile)
	if _, err := a.Quorum(m.ctx); err != nil {
		tb.Fatal(err)
	}
	m.lease(a.Mutex("held").TryLock(m.ctx))
	m.lease(a.Election("elected").TryCampaign(m.ctx))
	m.lease(a.RWMutex("read").RLock(m.ctx))
	m.lease(b.RWMutex("read").RLock(m.ctx))
	lease := m.lease(a.Mutex("broken").TryLock(m.ctx))
	m.must(b.Break(m.ctx, "broken", lease.Token()))
	m.lease(a.Mutex("foreign at a master").TryLock(m.ctx))
	command("DEL", "holdfast:{%quorum}:foreign at a master")
	command("SET", "holdfast:{%quorum}:foreign at a master", "nothing of ours")
	m.is("broken", lockinfo.StateBroken)
	for _, name := range []string{"held", "elected", "read", "foreign at a master"} {
		m.is(name, lockinfo.StateHeld)
	}
	return m.made
}
