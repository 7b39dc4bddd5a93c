package faults

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/storetest"
)

// The times that a server's clock shows. A machine without a battery for its clock shows 1970 or
// 2000 until it hears the time. In September 2001 the microseconds since 1970 got their sixteenth
// digit.
var (
	in1970 = time.Unix(0, 0)
	in2000 = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	in2001 = time.Unix(1e9-3, 0) // three seconds before
	in2200 = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

// The time that the clock of a server shows does not matter: locks do the same at any time.
func TestServerClockShowsAnyTime(t *testing.T) {
	long(t)
	for name, at := range map[string]time.Time{"1970": in1970, "2000": in2000, "September 2001": in2001, "2200": in2200} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := redisserver.NewClock(t)
			clock.Show(at)
			srv := clock.Start(t)
			clock.Show(at) // it took some time to start
			visitEach(t, srv, map[string]int64{})
		})
	}
}

// A store keeps all its promises in 1970, too.
func TestConformanceIn1970(t *testing.T) {
	if !measured() {
		t.Skip("it takes a minute of its own: HOLDFAST_PROOF=1, as in make proof, runs it")
	}
	clock := redisserver.NewClock(t)
	clock.Show(in1970)
	srv := clock.Start(t)
	storetest.Run(t, storetest.Backend{
		Open: func(tb testing.TB, config *holdfast.Config) *holdfast.Client {
			c, closeAll, err := way{Topology: single, Addrs: []string{srv.Addr()}}.open(config, nil, nil)
			if err != nil {
				tb.Fatal(err)
			}
			tb.Cleanup(func() { _ = closeAll() })
			return c
		},
	})
}

// The clock is set back while many wait: each who joins is behind all who joined before.
func TestOrderThroughStepsBack(t *testing.T) {
	long(t)
	for name, steps := range map[string][]time.Time{
		"to 2000":               {in2000},
		"to 1970":               {in1970},
		"to 2000, then to 1970": {in2000, in1970},
		"within 1970":           {in1970.Add(time.Hour), in1970.Add(time.Minute), in1970},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := redisserver.NewClock(t)
			v := &visit{T: t, srv: clock.Start(t), name: "n", tokens: map[string]int64{}}
			join := func() *waiter { return v.settles(&holdfast.Config{TTL: time.Minute}) }
			lease := v.got(client(t, v.srv.Addr(), nil).Mutex(v.name, holdfast.WithTTL(5*time.Minute), holdfast.WithoutRenewal()).Lock)
			queue := []*waiter{join(), join()}
			for _, at := range steps {
				clock.Show(at)
				queue = append(queue, join(), join())
			}
			for _, next := range queue {
				lease = next.passes(lease)
			}
			v.done(lease)
		})
	}
}

// A waiter that joined in 1970, and has asked since the clock was set forward, is before all that
// joined later.
func TestOrderThroughAStepForward(t *testing.T) {
	long(t)
	for name, step := range map[string]struct{ from, to time.Time }{
		"from 1970 to 2000":  {in1970, in2000},
		"from 1970 to today": {in1970, time.Now()},
		"from 2000 to today": {in2000, time.Now()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := redisserver.NewClock(t)
			v := &visit{T: t, srv: clock.Start(t), name: "n", tokens: map[string]int64{}}
			join := func() *waiter { return v.settles(&holdfast.Config{TTL: time.Minute}) }
			// It ends in five minutes from now, whatever the clock shows before.
			lease := v.got(client(t, v.srv.Addr(), nil).Mutex(v.name, holdfast.WithTTL(5*time.Minute), holdfast.WithoutRenewal()).Lock)
			clock.Show(step.from)
			queue := []*waiter{join()}
			clock.Show(step.to)
			eventually(t, "who waits has asked since", func() bool { return v.asked(step.to) == 1 })
			queue = append(queue, join(), join())
			for _, next := range queue {
				lease = next.passes(lease)
			}
			v.done(lease)
		})
	}
}

// settles lets one more wait, and returns when it has asked once more, as it does as soon as it
// listens. Then no script runs for seconds. A clock that is set back while one runs may end the
// line, which its waiters then join anew.
func (v *visit) settles(config *holdfast.Config) *waiter {
	v.Helper()
	before := v.asked(time.UnixMilli(0))
	w := v.waits(client(v.T, v.srv.Addr(), config).Mutex(v.name).Lock)
	eventually(v.T, "the waiter has asked once more", func() bool { return v.asked(time.UnixMilli(0)) == before+1 })
	return w
}

// asked is how many in the queue live beyond a moment: those that have asked again after it.
func (v *visit) asked(since time.Time) (n int64) {
	n, _ = do(v.T, v.srv, "ZCOUNT", "holdfast:{"+v.name+"}:queue", "-inf", fmt.Sprint(-since.UnixMilli())).(int64)
	return n
}

// A server with an append-only file is killed and comes back at another time, to and fro: what it
// is used for goes on, with tokens that grow through all of it.
func TestServerRestartedAtAnyTime(t *testing.T) {
	long(t)
	for name, at := range map[string]time.Time{"1970": in1970, "2000": in2000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := redisserver.NewClock(t)
			srv := clock.Start(t, "--appendonly", "yes", "--appendfsync", "always")
			v := &visit{T: t, srv: srv, name: "through", tokens: map[string]int64{}}
			config := &holdfast.Config{TTL: time.Minute}
			stay, wait := client(t, srv.Addr(), config), client(t, srv.Addr(), config)
			restart := func(show func()) {
				srv.Kill()
				show()
				v.must(srv.Restart())
			}
			tokens := map[string]int64{}
			use := func(when string) { t.Run(when, func(t *testing.T) { visitEach(t, srv, tokens) }) }

			use("today")
			lease := v.got(stay.Mutex(v.name).Lock)
			next := v.waits(wait.Mutex(v.name).Lock)
			restart(func() { clock.Show(at) })
			v.must(answered(v.within(), lease.Check)) // a clock that is set back ends nothing
			v.held(wait.Mutex(v.name).TryLock)
			use("then")
			second := next.passes(lease)

			restart(func() { clock.Ahead(0) })
			if err := answered(v.within(), second.Check); !errors.Is(err, holdfast.ErrLost) { // as if it was time that passed
				t.Errorf("a hold of %v was answered %v today", at.Year(), err)
			}
			use("today again")
			v.done(v.got(stay.Mutex(v.name).Lock))
			restart(func() { clock.Show(at) })
			use("then again")
			v.noneForeign()
		})
	}
}

// noneForeign checks that what the server keeps of tokens has all its digits.
func (v *visit) noneForeign() {
	v.Helper()
	for _, key := range do(v.T, v.srv, "KEYS", "*:clock").([]any) {
		if token := do(v.T, v.srv, "GET", key).(string); len(token) != 16 || strings.Trim(token, "0123456789") != "" {
			v.Errorf("%s is %q", key, token)
		}
	}
}

// A largest token of fewer digits, as was written before it always had sixteen, counts as that
// number: the next is the larger of it + 1 and the server's time.
func TestTokenOfFewerDigits(t *testing.T) {
	stands := func(at time.Time) func(*testing.T) *redisserver.Server {
		return func(t *testing.T) *redisserver.Server {
			long(t)
			clock := redisserver.NewClock(t)
			srv := clock.Start(t)
			clock.Stop(at.Add(200 * time.Millisecond))
			return srv
		}
	}
	takes := map[string]func(*visit) *holdfast.Lease{
		"a lock":   func(v *visit) *holdfast.Lease { return v.got(v.a.Mutex(v.name).Lock) },
		"a group":  func(v *visit) *holdfast.Lease { return v.got(v.a.All([]string{v.name}).TryLock) },
		"an owner": func(v *visit) *holdfast.Lease { return v.got(v.a.Mutex(v.name, holdfast.WithOwner("me")).Lock) },
		"permits":  func(v *visit) *holdfast.Lease { once, _ := v.permits(v.a, 3, 2); return v.got(once) },
		"who waits": func(v *visit) *holdfast.Lease {
			lease := v.got(v.b.Mutex(v.name).Lock)
			next := v.waits(v.a.Mutex(v.name).Lock)
			v.plant()
			return next.passes(lease)
		},
		"a block": func(v *visit) *holdfast.Lease { // the second of them is passed on inside the process
			m := v.a.Mutex(v.name)
			lease := v.got(m.Lock)
			ctx := v.within()
			next := later(func() (*holdfast.Lease, error) { return m.Lock(ctx) })
			v.done(lease)
			second, err := next()
			v.must(err)
			v.done(second)
			v.plant()
			return v.got(m.Lock)
		},
	}
	for when, start := range map[string]func(*testing.T) *redisserver.Server{
		"today":                       func(t *testing.T) *redisserver.Server { return redisserver.Start(t) },
		"in the first second of 1970": stands(in1970),
		"in 2000":                     stands(in2000),
	} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			srv := start(t)
			a, b := client(t, srv.Addr(), nil), client(t, srv.Addr(), nil)
			for name, take := range takes {
				for _, token := range []int64{7, 5000012, 1e15 - 1} {
					t.Run(fmt.Sprint(name, ", after ", token), func(t *testing.T) {
						v := &visit{T: t, srv: srv, a: a, b: b, name: "n", tokens: map[string]int64{}, planted: token}
						v.back(v.got(v.a.Mutex(v.name).Lock)) // so that there is a clock
						v.plant()
						before := v.now()
						lease := take(v)
						if got, after := lease.Token(), v.now(); got <= token || got < before || got > max(token+1, after) {
							t.Errorf("token %d, between %d and %d", got, before, after)
						}
						v.done(lease)
						v.noneForeign()
					})
				}
			}
		})
	}
}

// plant overwrites the largest token that the server knows, with fewer digits.
func (v *visit) plant() {
	v.Helper()
	for _, key := range do(v.T, v.srv, "KEYS", "*:clock").([]any) {
		do(v.T, v.srv, "SET", key, v.planted)
	}
	clear(v.tokens)
}

// now is the server's time, as tokens are.
func (v *visit) now() int64 {
	v.Helper()
	at, err := v.srv.Time()
	v.must(err)
	return at.UnixMicro()
}
