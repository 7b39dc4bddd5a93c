package storetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

func order() []test {
	return []test{
		{"first come, first served between clients", orderOfClients, queue},
		{"first come, first served between goroutines", orderOfGoroutines, 0},
		{"strict order between goroutines of two clients", strictOrder, queue},
	}
}

// A served notes the order in which goroutines came in.
type served struct {
	mu    sync.Mutex
	order []string
	all   sync.WaitGroup
}

// next starts a goroutine that waits. When the goroutine is in, it notes that and releases.
func (s *served) next(e *env, c *client, who string, m *holdfast.Mutex) {
	w := e.startWaiting(e.ctx(), c, m.Lock)
	s.all.Go(func() {
		<-w.done
		if w.err != nil {
			e.Errorf("%s: %v", who, w.err)
			return
		}
		s.mu.Lock()
		s.order = append(s.order, who)
		s.mu.Unlock()
		e.release(w.lease)
	})
}

// were waits for all goroutines and compares the order.
func (s *served) were(e *env, want ...string) {
	e.Helper()
	s.all.Wait()
	if !slices.Equal(s.order, want) {
		e.Errorf("served %q, want %q", s.order, want)
	}
}

// Trap 19: the order is that of coming, also within one second.
func (e *env) checkServedInOrder(clients []*client, options ...holdfast.Option) {
	e.Helper()
	lease := e.lock(e.client().Mutex(name))
	var s served
	var want []string
	for i, c := range clients {
		want = append(want, fmt.Sprint(i))
		s.next(e, c, want[i], c.Mutex(name, options...))
	}
	e.release(lease)
	s.were(e, want...)
}

func orderOfClients(e *env) {
	e.checkServedInOrder([]*client{e.client(), e.client(), e.client(), e.client(), e.client(), e.client()})
}

func orderOfGoroutines(e *env) { e.checkServedInOrder(slices.Repeat([]*client{e.client()}, 12)) }

func strictOrder(e *env) {
	e.checkServedInOrder(slices.Repeat([]*client{e.client(), e.client()}, 3), holdfast.WithStrictOrder())
}

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

// checkAbove fails unless a lease has a token above the last one, which storage can read as a
// number.
func (e *env) checkAbove(last *int64, lease *holdfast.Lease) {
	e.Helper()
	token := lease.Token()
	if token <= *last || token >= 1<<53 || lease.Tokens()[name] != token {
		e.Errorf("token %d after %d, %v", token, *last, lease.Tokens())
	}
	*last = token
}

func tokensHandedOn(e *env) {
	var last int64
	lease := e.lock(e.client().Mutex(name))
	var waiters []*waiter
	for range 5 {
		c := e.client()
		waiters = append(waiters, e.startWaiting(e.ctx(), c, c.Mutex(name, holdfast.WithTTL(time.Minute)).Lock))
	}
	for _, w := range waiters {
		e.checkAbove(&last, lease)
		e.release(lease)
		lease = w.await()
	}
	e.checkAbove(&last, lease)
	e.release(lease)
}
