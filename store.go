package holdfast

import (
	"reflect"

	"github.com/holdfast-go/holdfast/store"
)

// address is that of the only server behind a store; empty: there are several, or it may change.
func address(s store.Store) string {
	if one, ok := s.(store.Addresser); ok {
		return one.Address()
	}
	return ""
}

// same tells equal stores. Those of a type that == panics on are never the same.
func same(a, b store.Store) bool {
	return !isNil(a) && !isNil(b) && reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

// checkStore refuses what is no store, or one that can never work.
func (p *problems) checkStore(argument string, s store.Store) {
	if isNil(s) {
		p.add(argument, nil, "not nil")
		return
	}
	if checker, ok := s.(store.Checker); ok && checker.Unusable() != nil {
		p.add(argument, checker.Unusable().Error(), "one that can work")
	}
}

// isNil tells nil and a nil pointer in an interface.
func isNil(s store.Store) bool {
	if s == nil {
		return true
	}
	v := reflect.ValueOf(s)
	return v.Kind() == reflect.Pointer && v.IsNil()
}
