package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/store"
)

func arguments() []test {
	return []test{
		{"of a mutex", badMutex, 0},
		{"of a client", badConfig, 0},
		{"at their limits", limits, 0},
		{"all that is wrong is said at once", severalBad, 0},
		{"nil contexts", nilContexts, 0},
		{"nil and zero handles", zeroHandles, 0},
	}
}

// refused fails unless err is an *ArgumentError about these arguments and no others.
func (e *env) refused(err error, arguments ...string) *holdfast.ArgumentError {
	e.Helper()
	var bad *holdfast.ArgumentError
	if !errors.As(err, &bad) {
		e.Errorf("got %v, want an ArgumentError about %q", err, arguments)
		return nil
	}
	var got []string
	for _, p := range bad.Problems {
		got = append(got, p.Argument)
		if !strings.Contains(err.Error(), p.Argument) || p.Allowed == "" || !strings.Contains(err.Error(), p.Allowed) {
			e.Errorf("the text does not name %q and %q: %v", p.Argument, p.Allowed, err)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(arguments) {
		e.Errorf("%v: about %q, want %q", err, got, arguments)
	}
	return bad
}

// silent returns a client whose store must not be used.
func (e *env) silent(config *holdfast.Config) *client {
	c, err := holdfast.New(fakeStore{func(c store.Command) store.Reply {
		e.Errorf("sent: %q", c)
		return store.Reply{Err: errors.New("not to be sent")}
	}}, config)
	if err != nil {
		e.Fatalf("New: %v", err)
	}
	return &client{c, newEvents(e.T)}
}

// everyMethod calls each method of a mutex and passes the errors on.
func (e *env) everyMethod(m *holdfast.Mutex, check func(error)) {
	e.Helper()
	lock, err := m.Lock(e.ctx())
	check(err)
	try, err := m.TryLock(e.ctx())
	check(err)
	check(m.Do(e.ctx(), func(context.Context) error { e.Error("it ran"); return nil }))
	if lock != nil || try != nil {
		e.Error("a lease came with the error")
	}
}

func badMutex(e *env) {
	c := e.silent(nil)
	long := strings.Repeat("x", 1025)
	for _, test := range []struct {
		name, lock string
		options    []holdfast.Option
		argument   string
		value      string
	}{
		{"empty name", "", nil, "name", `""`},
		{"long name", long, nil, "name", "1025"},
		{"zero TTL", name, []holdfast.Option{holdfast.WithTTL(0)}, "WithTTL", "0s"},
		{"negative TTL", name, []holdfast.Option{holdfast.WithTTL(-time.Second)}, "WithTTL", "-1s"},
		{"TTL below a millisecond", name, []holdfast.Option{holdfast.WithTTL(time.Microsecond)}, "WithTTL", "1µs"}, // trap 26
		{"TTL too short", name, []holdfast.Option{holdfast.WithTTL(100*time.Millisecond - 1)}, "WithTTL", "99.999999ms"},
		{"TTL too long", name, []holdfast.Option{holdfast.WithTTL(5*time.Minute + 1)}, "WithTTL", "5m0.000000001s"},
		{"zero max hold", name, []holdfast.Option{holdfast.WithMaxHold(0)}, "WithMaxHold", "0s"},
		{"max hold too short", name, []holdfast.Option{holdfast.WithMaxHold(99 * time.Millisecond)}, "WithMaxHold", "99ms"},
		{"zero min hold", name, []holdfast.Option{holdfast.WithMinHold(0)}, "WithMinHold", "0s"},
		{"negative min hold", name, []holdfast.Option{holdfast.WithMinHold(-1)}, "WithMinHold", "-1ns"},
		{"min hold above MaxTTL", name, []holdfast.Option{holdfast.WithMinHold(6 * time.Minute)}, "WithMinHold", "6m0s"},
		{"min hold above max hold", name, []holdfast.Option{holdfast.WithMinHold(3 * time.Second), holdfast.WithMaxHold(2 * time.Second)}, "WithMinHold", "3s"},
		{"zero polling", name, []holdfast.Option{holdfast.WithPolling(0, 1)}, "WithPolling interval", "0s"},
		{"negative polling", name, []holdfast.Option{holdfast.WithPolling(-time.Second, 1)}, "WithPolling interval", "-1s"},
		{"polling too often", name, []holdfast.Option{holdfast.WithPolling(time.Microsecond, 0)}, "WithPolling interval", "1µs"},
		{"negative attempts", name, []holdfast.Option{holdfast.WithPolling(time.Second, -1)}, "WithPolling attempts", "-1"},
		{"empty owner", name, []holdfast.Option{holdfast.WithOwner("")}, "WithOwner", `""`},
		{"long owner", name, []holdfast.Option{holdfast.WithOwner(long)}, "WithOwner", "1025"},
		{"long label", name, []holdfast.Option{holdfast.WithLabel(long)}, "WithLabel", "1025"},
		{"no time to wait", name, []holdfast.Option{holdfast.WithWait(0)}, "WithWait", "0s"},
		{"negative time to wait", name, []holdfast.Option{holdfast.WithWait(-time.Second)}, "WithWait", "-1s"},
	} {
		e.everyMethod(c.Mutex(test.lock, test.options...), func(err error) {
			e.Helper()
			if e.refused(err, test.argument); !strings.Contains(fmt.Sprint(err), test.value) {
				e.Errorf("%s: the value %s is not named: %v", test.name, test.value, err)
			}
		})
	}
	e.refused(c.Mutex(name).Do(e.ctx(), nil), "fn")
	e.close(c)
}

func badConfig(e *env) {
	st, long := fakeStore{}, strings.Repeat("x", 1025)
	for _, test := range []struct {
		config   holdfast.Config
		argument string
	}{
		{holdfast.Config{TTL: 99 * time.Millisecond}, "Config.TTL"},
		{holdfast.Config{TTL: -1}, "Config.TTL"},
		{holdfast.Config{TTL: 6 * time.Minute}, "Config.TTL"},
		{holdfast.Config{TTL: time.Minute, MaxTTL: time.Second}, "Config.TTL"},
		{holdfast.Config{MaxTTL: 24*time.Hour + 1}, "Config.MaxTTL"},
		{holdfast.Config{ReleaseTimeout: -1}, "Config.ReleaseTimeout"},
		{holdfast.Config{ReleaseTimeout: time.Microsecond}, "Config.ReleaseTimeout"},
		{holdfast.Config{Prefix: "a{b"}, "Config.Prefix"},
		{holdfast.Config{Prefix: "a}b"}, "Config.Prefix"},
		{holdfast.Config{Prefix: long}, "Config.Prefix"},
		{holdfast.Config{Label: long}, "Config.Label"},
		{holdfast.Config{Wait: -time.Second}, "Config.Wait"},
	} {
		c, err := holdfast.New(st, &test.config)
		if e.refused(err, test.argument); c != nil {
			e.Errorf("%s: a client came with the error", test.argument)
		}
	}
	var none *fakeStore
	for _, st := range []store.Store{nil, none} {
		_, err := holdfast.New(st, nil)
		e.refused(err, "store")
		_, err = holdfast.New(st, &holdfast.Config{TTL: -1})
		e.refused(err, "store", "Config.TTL")
	}
}

// Values at the edge of what is allowed work.
func limits(e *env) {
	a, b := e.client(func(c *holdfast.Config) { c.MaxTTL = 24 * time.Hour }), e.client()
	long := strings.Repeat("x", 1024)
	for _, options := range [][]holdfast.Option{
		nil, {nil, nil},
		{holdfast.WithTTL(24 * time.Hour)},
		{holdfast.WithMaxHold(1000 * time.Hour)},
		{holdfast.WithMaxHold(time.Minute), holdfast.WithMinHold(1)},
		{holdfast.WithMinHold(time.Microsecond)},
		{holdfast.WithTTL(20*time.Second + 1)},
		{holdfast.WithOwner(long), holdfast.WithLabel(long)},
		{holdfast.WithPolling(time.Millisecond, 0)},
		{holdfast.WithTTL(-1), holdfast.WithTTL(20 * time.Second)}, // the later option wins
	} {
		lease := e.lock(a.Mutex(long, options...))
		e.held(b.Mutex(long))
		e.release(lease)
		e.release(e.lock(b.Mutex(long)))
	}
}

func severalBad(e *env) {
	c := e.silent(nil)
	m := c.Mutex("", holdfast.WithTTL(1), holdfast.WithOwner(""), holdfast.WithPolling(0, -1))
	e.everyMethod(m, func(err error) {
		e.Helper()
		e.refused(err, "name", "WithTTL", "WithPolling interval", "WithPolling attempts", "WithOwner")
	})
	e.close(c)
}

func nilContexts(e *env) {
	c := e.silent(nil)
	m := c.Mutex(name)
	var none context.Context
	e.refused(second(m.Lock(none)), "ctx")
	e.refused(second(m.TryLock(none)), "ctx")
	e.refused(m.Do(none, func(context.Context) error { e.Error("it ran"); return nil }), "ctx")
	e.close(c)
}

func zeroHandles(e *env) {
	var noClient *holdfast.Client
	var noMutex *holdfast.Mutex
	for _, m := range []*holdfast.Mutex{noMutex, new(holdfast.Mutex), noClient.Mutex(name), new(holdfast.Client).Mutex(name)} {
		e.everyMethod(m, func(err error) { e.Helper(); e.refused(err, "Mutex") })
	}
	for _, c := range []*holdfast.Client{noClient, new(holdfast.Client)} {
		if err := c.Close(); err != nil {
			e.Errorf("Close: %v", err)
		}
	}
}
