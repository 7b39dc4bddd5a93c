package clock_test

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
	"github.com/holdfast-go/holdfast/internal/testing/network"
	"github.com/holdfast-go/holdfast/proof/embedded"
	"github.com/holdfast-go/holdfast/proof/harness"
	"github.com/holdfast-go/holdfast/redisstore"
)

// TestMain fails when a goroutine is left behind (trap 33).
func TestMain(m *testing.M) {
	harness.Quiet()
	os.Exit(leak.Main(m))
}

// A scene is a fake clock, an embedded server, and clients with a network each. All of its times
// are exact: the clock stands still while anybody has something to do.
type scene struct {
	t     *testing.T
	srv   *embedded.Server
	clock *embedded.Clock // the server's
	rdb   *redis.Client   // the operator's
	sha   map[string]string
	mu    sync.Mutex
	log   []arrival
	held  []*holdfast.Lease
}

// An arrival is a command that reached the server.
type arrival struct {
	at   time.Time
	from string
	op   string // of a script: ask, free, renew; else the command
	keys []string
	args []string
}

// An actor is a client with a network of its own to the server: a process on another host.
type actor struct {
	*holdfast.Client
	*network.Network
	name string
}

// play runs a scene. A bubble's clock begins in the year 2000, and so does the server's.
func play(t *testing.T, f func(t *testing.T, s *scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { sleep(time.Minute) }) // go-redis dials in the background for a while
		s := &scene{t: t, srv: embedded.Start(t), sha: map[string]string{}}
		s.clock = embedded.NewClock(s.srv)
		s.rdb = s.srv.Client(func(o *redis.Options) { o.ClientName, o.DisableIdentity = "operator", true })
		fatal.If(t, s.rdb.Ping(t.Context()).Err())
		s.srv.Redis.Server().SetPreHook(s.noteCommand)
		warm := s.actor("warm")
		lease := s.lock(warm, "warm")
		fatal.If(t, lease.Check(t.Context()))
		s.release(lease)
		f(t, s)
	})
}

func runPlay(t *testing.T, part string, f func(t *testing.T, s *scene)) {
	t.Helper()
	t.Run(part, func(t *testing.T) { play(t, f) })
}

// noteCommand notes a command and sets the server's clock. Commands of scripts come from nobody;
// their server is locked.
func (s *scene) noteCommand(c *server.Peer, cmd string, args ...string) bool {
	if c.ClientName == "" {
		return false
	}
	s.clock.Tick()
	s.mu.Lock()
	defer s.mu.Unlock()
	a := arrival{at: time.Now(), from: c.ClientName, op: cmd, args: args}
	if cmd == "EVALSHA" || cmd == "EVAL" {
		n, _ := strconv.Atoi(args[1])
		a.keys, a.args = args[2:2+n], args[2+n:]
		switch {
		case len(a.args) == 5*n: // five a name
			a.op = "renew"
		case len(a.args) >= 7:
			a.op = "ask"
		default:
			a.op = "free"
		}
		if cmd == "EVALSHA" {
			s.sha[a.op] = args[0]
		}
	}
	s.log = append(s.log, a)
	return false
}

// script is the digest by which requests of an operation name it.
func (s *scene) script(op string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sha[op]
}

// commands are those of an actor since a moment, of the given kinds, or all.
func (s *scene) commands(a *actor, since time.Time, ops ...string) (found []arrival) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.log {
		if (len(ops) == 0 || slices.Contains(ops, c.op)) && c.from == a.name && !c.at.Before(since) {
			found = append(found, c)
		}
	}
	return found
}

func (s *scene) actor(name string, change ...func(*holdfast.Config)) *actor {
	s.t.Helper()
	server := s.srv.Redis.Server() // of the server that is closed at the end, while a client may still dial
	serve := func(conn net.Conn) error { server.ServeConn(conn); return nil }
	a := &actor{Network: network.New(serve, network.Config{}), name: name}
	rdb := s.srv.Client(func(o *redis.Options) {
		o.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) { return a.Dial(ctx) }
		o.ClientName, o.DisableIdentity = name, true
		o.PoolSize = 1000 // go-redis waits for a turn with timers that all bubbles would share
	})
	s.t.Cleanup(a.Kill)
	config := &holdfast.Config{Label: name}
	for _, f := range change {
		f(config)
	}
	client, err := holdfast.New(redisstore.New(rdb), config)
	fatal.If(s.t, err)
	a.Client = client
	s.t.Cleanup(func() { _ = client.Close() })
	return a
}

// pass lets time go by.
func sleep(d time.Duration) {
	<-time.After(max(d, 1))
	synctest.Wait()
}

// until lets time go by until a moment.
func sleepUntil(at time.Time) { sleep(time.Until(at)) }

// slowAsk bounds the pause between two asks of a waiter; claimTime is how long a hand-over waits to
// be taken up.
const (
	slowAsk   = 6 * time.Second
	claimTime = 500 * time.Millisecond
)

// margin is that of the design.
func margin(ttl time.Duration) time.Duration { return ttl/100 + 5*time.Millisecond }

type lockFunc func(context.Context) (*holdfast.Lease, error)

func mutexes(a *actor, options ...holdfast.Option) lockFunc { return a.Mutex("n", options...).Lock }
func readers(a *actor, options ...holdfast.Option) lockFunc { return a.RWMutex("n", options...).RLock }
func writers(a *actor, options ...holdfast.Option) lockFunc { return a.RWMutex("n", options...).Lock }

func (s *scene) lock(a *actor, name string, options ...holdfast.Option) *holdfast.Lease {
	s.t.Helper()
	return s.acquire(a.Mutex(name, options...).Lock)
}

// acquire returns a lease that is there at once, of one who is alone.
func (s *scene) acquire(lock lockFunc) *holdfast.Lease {
	s.t.Helper()
	lease := s.take(lock)
	s.checkAlone(lease)
	return lease
}

// take returns a lease that is there at once, beside others.
func (s *scene) take(lock lockFunc) *holdfast.Lease {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	lease, err := lock(ctx)
	fatal.If(s.t, err)
	return lease
}

func (s *scene) release(lease *holdfast.Lease) {
	s.t.Helper()
	fatal.If(s.t, lease.Release())
}

type got struct {
	lease *holdfast.Lease
	err   error
	at    time.Time
}

// startLock lets an actor wait for a name, and returns when it stands in the queue or is done.
func (s *scene) startLock(a *actor, name string, options ...holdfast.Option) <-chan got {
	return s.start(s.t.Context(), a.Mutex(name, options...).Lock)
}

// start lets somebody wait for anything, as startLock does for a mutex.
func (s *scene) start(ctx context.Context, lock lockFunc) <-chan got {
	done := make(chan got, 1)
	go func() {
		lease, err := lock(ctx)
		done <- got{lease, err, time.Now()}
	}()
	synctest.Wait()
	return done
}

// await returns what a waiter got, within a time that is long.
func (s *scene) await(waiter <-chan got) got {
	s.t.Helper()
	select {
	case g := <-waiter:
		if g.err == nil {
			s.checkAlone(g.lease)
		}
		return g
	case <-time.After(time.Hour):
		s.t.Fatal("waited for an hour")
		return got{}
	}
}

// awaitBetween fails unless a waiter gets in so long after a moment.
func (s *scene) awaitBetween(waiter <-chan got, since time.Time, least, most time.Duration) got {
	s.t.Helper()
	g := <-waiter
	if took := g.at.Sub(since); g.err != nil || took < least || took > most {
		s.t.Errorf("the next got in after %v, %v; want %v to %v", took, g.err, least, most)
	}
	return g
}

// checkAlone checks rule 1: whoever got a lease before knows by now that it is over, and had a
// smaller token.
func (s *scene) checkAlone(lease *holdfast.Lease) {
	s.t.Helper()
	for _, earlier := range s.held {
		if earlier.Name() != lease.Name() {
			continue
		}
		if earlier.Err() == nil {
			s.t.Errorf("two trusted leases of %q: tokens %d and %d", lease.Name(), earlier.Token(), lease.Token())
		}
		if earlier.Token() >= lease.Token() {
			s.t.Errorf("token %d after %d", lease.Token(), earlier.Token())
		}
	}
	s.held = append(s.held, lease)
}

// awaitLoss waits for the end of a lease, checks that it was lost, and why, and returns when.
func awaitLoss(t *testing.T, lease *holdfast.Lease, reason holdfast.Reason) time.Time {
	t.Helper()
	select {
	case <-lease.Done():
	case <-time.After(time.Hour):
		t.Fatal("not lost within an hour")
	}
	var why *holdfast.LostError
	if err := context.Cause(leased.Context(lease)); !errors.As(err, &why) || !errors.Is(err, holdfast.ErrLost) ||
		why.Reason != reason {
		t.Errorf("lost with %v, want %q", err, reason)
	}
	if err := lease.Err(); !errors.Is(err, holdfast.ErrLost) {
		t.Errorf("Err is %v", err)
	}
	if until := lease.Until(); until.After(time.Now()) {
		t.Errorf("lost, and trusted for another %v", time.Until(until))
	}
	return time.Now()
}

// key is where the state of a name lies.
func key(name string) string { return "holdfast:{" + name + "}" }

// remainingTTL is how long the key of a name still lives; negative when it is gone.
func (s *scene) remainingTTL(name string) time.Duration {
	s.t.Helper()
	d, err := s.rdb.PTTL(context.WithoutCancel(s.t.Context()), key(name)).Result()
	fatal.If(s.t, err)
	return d
}
