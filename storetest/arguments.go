package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
)

// checkRefused fails unless err is an *ArgumentError about these arguments and no others.
func (e *env) checkRefused(err error, arguments ...string) *holdfast.ArgumentError {
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

// never is a function that must not run.
func (e *env) never(context.Context) error { e.Error("it ran"); return nil }

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
		e.busyError(b.Mutex(long))
		e.release(lease)
		e.release(e.lock(b.Mutex(long)))
	}
}
