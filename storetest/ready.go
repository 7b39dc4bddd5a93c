package storetest

import (
	"errors"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/store"
)

func readiness() []test {
	return []test{
		{"a server that is away, or refuses", readyRefused, 0},
	}
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
