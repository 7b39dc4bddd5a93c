package storetest

import (
	"strings"

	"github.com/holdfast-go/holdfast"
)

// Trap 27. The keys of a lock lie in one slot, even if the name has the marks of a hash tag in it.
func oddNames() []string {
	return []string{
		"a", " ", "two words", "\n", "line\nline\r\n", "\x00", "a\x00b", "{", "}", "{}", "}{", "}a", "{a}", "a{b}c",
		"{a}{b}", "}}", "{{", "a}", "%", "%%",
		"%7D", "%257D", "%7d", "%25", "a:b", ":", "@", "*", "?", "[a-z]", "\\", "'", `"`, "äöü", "日本語", "\xff\xfe",
		"a\xffb", "\xc3", "1", "-1", "clock", "{}:clock",
		strings.Repeat("n", 1024), strings.Repeat("}", 1024), strings.Repeat("%", 1024), strings.Repeat("\x00", 1024),
		strings.Repeat("é", 512),
	}
}

// All are held at once, so each is a lock of its own. "}" is not "%7D".
func distinctNames(e *env) {
	a, b := e.client(label("a:b|c\x00\xff")), e.client()
	var leases []*holdfast.Lease
	for _, name := range oddNames() {
		leases = append(leases, e.tryLock(a.Mutex(name, holdfast.WithOwner(name))))
	}
	e.checkList(b, holdfast.ListOptions{}, oddNames()...)
	for i, name := range oddNames() {
		lease := leases[i]
		if hold := e.onlyHold(e.inspect(b, name)); hold.Label != "a:b|c\x00\xff" || hold.Owner != name {
			e.Errorf("%q is told as %+v", name, hold)
		}
		if lease.Name() != name {
			e.Errorf("%q is called %q", name, lease.Name())
		}
		if held := e.busyError(b.Mutex(name)); held.Name != name {
			e.Errorf("%q is held as %q", name, held.Name)
		}
		e.checkHolds(lease)
		e.release(lease)
		e.checkFree(b.Mutex(name))
	}
}
