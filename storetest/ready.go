package storetest

import (
	"errors"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/store"
)

func readiness() []test {
	return []test{
		{"nothing is taken", readyTakesNothing, 0},
		{"a server that is away, or refuses", readyRefused, 0},
	}
}

// ready asks until there is an answer.
func (e *env) ready(c *client) error {
	return e.askUntilAnswered(func() error { return c.Ready(e.ctx()) })
}

func readyTakesNothing(e *env) {
	a, b := e.client(), e.client()
	if err := e.ready(a); err != nil {
		e.Errorf("Ready of a new client: %v", err)
	}
	lease := e.lock(a.Mutex(name))
	for _, c := range []*client{a, b} {
		if err := e.ready(c); err != nil {
			e.Errorf("Ready while a lock is held: %v", err)
		}
	}
	e.checkHolds(lease)
	e.release(lease)
	e.close(a)
	e.checkIs(a.Ready(e.ctx()), holdfast.ErrClosed)
}

func readyRefused(e *env) {
	for text, kind := range map[string]holdfast.StoreKind{
		"LOADING Redis is loading the dataset in memory":                             holdfast.StoreLoading,
		"READONLY You can't write against a read only replica.":                      holdfast.StoreReadOnly,
		"NOAUTH Authentication required.":                                            holdfast.StoreDenied,
		"NOPERM this user has no permissions to run the 'eval' command":              holdfast.StoreDenied,
		"ERR unknown command 'EVAL'":                                                 holdfast.StoreUnsupported,
		"ERR Error running script (call to f_1): @user_script:2: READONLY You can't": holdfast.StoreReadOnly,
	} {
		err := e.openFake(store.Reply{Refused: text}).Ready(e.ctx())
		checkEqual(e, text+": operation", e.checkStoreError(err, kind, false).Op, "ready")
	}
	err := e.openFake(store.Reply{Err: errors.New("no route to host"), Unsent: true}).Ready(e.ctx())
	e.checkIs(err, holdfast.ErrUnavailable)
}
