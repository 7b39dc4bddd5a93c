package holdfast

import (
	"net"
	"net/netip"
	"path"
	"reflect"
	"strings"

	"github.com/holdfast-go/holdfast/store"
)

// storeAddress returns the address of the only server behind a store; empty if there are several,
// or it may change.
func storeAddress(s store.Store) string {
	if one, ok := s.(store.Addresser); ok {
		return one.Address()
	}
	return ""
}

// haveSameAddress reports whether the servers of two stores have one address, as far as the
// addresses alone say.
func haveSameAddress(a, b store.Store) bool {
	if isNil(a) || isNil(b) {
		return false
	}
	one, other := plainAddress(storeAddress(a)), plainAddress(storeAddress(b))
	return one != "" && one == other
}

// plainAddress returns an address in one of the forms that it may have: a host without a name and a
// host that means any are this one. An address without a port is the path of a socket.
func plainAddress(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		if address == "" {
			return ""
		}
		return path.Clean(address)
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	ip, err := netip.ParseAddr(host)
	switch {
	case host == "" || host == "localhost" || err == nil && ip.IsUnspecified():
		host = "127.0.0.1"
	case err == nil:
		host = ip.Unmap().String()
	}
	return net.JoinHostPort(host, port)
}

// equalStores reports whether two stores are equal. Those of a type that == panics on never are.
func equalStores(a, b store.Store) bool {
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

// isNil reports whether a store is nil, or a nil pointer in an interface.
func isNil(s store.Store) bool {
	if s == nil {
		return true
	}
	v := reflect.ValueOf(s)
	return v.Kind() == reflect.Pointer && v.IsNil()
}
