// Package permissions tests what SECURITY.md says of the smallest user, with the permissions of
// real servers.
package permissions

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/eventually"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/store"
)

// A Realm is the servers whose users' permissions are tested: one server, or the masters of a
// cluster.
type Realm struct {
	// Servers carry out commands of an operator that may do all. So do their replicas, if there are
	// any.
	Servers, Replicas []func(args ...any) (any, error)

	// Store makes a store on a client of its own, which tb.Cleanup closes. The client is the
	// user's; it is the operator's if user is empty.
	Store func(tb testing.TB, user, password string) (store.Store, error)
}

// Run tests the smallest user of SECURITY.md, in the column of its table of this name. With all
// commands everything works. Without one command, what the table says is refused, as denied and by
// name, and the rest works. If an error says "not applied", Run checks that the request changed
// nothing. No name is left unusable. Realm makes the servers of a part of the test. Parts run in
// parallel if each has servers of its own. Run leaves out the commands in skipped.
func Run(t *testing.T, column string, parallel bool, realm func(*testing.T) Realm, skipped ...string) {
	t.Helper()
	table := readTable(t, column)
	all := slices.Sorted(maps.Keys(table))
	part := func(name, without string, commands, want []string) {
		t.Run(name, func(t *testing.T) {
			if parallel {
				t.Parallel()
			}
			if got := realm(t).refusedOperations(t, commands, without); !slices.Equal(got, want) {
				t.Errorf("refused: %s\nSECURITY.md says: %s", strings.Join(got, ", "), strings.Join(want, ", "))
			}
		})
	}
	part("all", "", all, nil)
	for _, without := range slices.DeleteFunc(slices.Clone(all), func(c string) bool {
		return slices.Contains(skipped, c)
	}) {
		few := slices.DeleteFunc(slices.Clone(all), func(c string) bool { return c == without })
		part("without "+without, without, few, slices.Sorted(slices.Values(table[without])))
	}
}

// Smallest returns the commands that SECURITY.md gives to the smallest user, by the column of its
// table.
func Smallest(t *testing.T, column string) []string {
	t.Helper()
	return slices.Sorted(maps.Keys(readTable(t, column)))
}

// securityPage returns the path of SECURITY.md, in a directory above that of the tests.
func securityPage() string {
	page := filepath.Join("..", "SECURITY.md")
	if _, err := os.Stat(page); err != nil {
		page = filepath.Join("..", page)
	}
	return page
}

// readTable returns a column of the table of SECURITY.md: for each command that is needed there,
// the operations that are refused without it.
func readTable(t *testing.T, column string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(securityPage())
	fatal.If(t, err)
	everything := slices.Sorted(maps.Keys(new(visitor).operations()))
	table, at := map[string][]string{}, 0
	for row := range strings.Lines(string(text)) {
		cells := strings.Split(strings.ReplaceAll(strings.TrimSpace(row), `\|`, "/"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if i := slices.Index(cells, column); i > 0 {
			at = i
		}
		if at == 0 || len(cells) <= at || !strings.HasPrefix(cells[1], "`+") {
			continue
		}
		command := strings.ReplaceAll(strings.Trim(cells[1], "`+"), "/", "|")
		switch what := cells[at]; {
		case what == "not used":
		case what == "nothing":
			table[command] = nil
		case what == "everything":
			table[command] = everything
		case strings.HasPrefix(what, "everything but "):
			but := strings.Split(strings.TrimPrefix(what, "everything but "), ", ")
			table[command] = slices.DeleteFunc(slices.Clone(everything), func(o string) bool {
				return slices.Contains(but, o)
			})
		default:
			table[command] = strings.Split(what, ", ")
		}
	}
	if len(table) < 20 {
		t.Fatalf("%d commands in the column %q of SECURITY.md", len(table), column)
	}
	return table
}

// Grant makes a user with the password "pw" that may touch what begins with a prefix, and may run
// the commands.
func (r Realm) Grant(t *testing.T, user, prefix string, commands ...string) {
	t.Helper()
	rule := []any{"ACL", "SETUSER", user, "reset", "on", ">pw", "~" + prefix + ":*", "resetchannels",
		"&" + prefix + ":*", "-@all"}
	for _, command := range commands {
		rule = append(rule, "+"+command)
	}
	for _, do := range slices.Concat(r.Servers, r.Replicas) {
		if _, err := do(rule...); err != nil {
			t.Fatalf("%v: %v", rule, err)
		}
	}
}

// number returns what the server answers that serves the key.
func (r Realm) number(args ...any) (n int64) {
	for _, do := range r.Servers {
		if answer, err := do(args...); err == nil {
			n, _ = answer.(int64)
		}
	}
	return n
}

// isUnanswered reports whether an error says nothing of what is allowed. Either no answer came in
// time, or a lease that a message had handed over ended before it was confirmed. Such a lease is
// trusted for half a second at first.
func isUnanswered(err error) bool {
	var failure *holdfast.StoreError
	if errors.As(err, &failure) && failure.Kind == holdfast.StoreDenied {
		return false
	}
	var lost *holdfast.LostError
	return errors.Is(err, holdfast.ErrUnavailable) || errors.As(err, &lost) && lost.Reason == holdfast.LossExpired
}

// refusedOperations returns the operations that a user with these commands is refused. Errors must
// name the missing command.
func (r Realm) refusedOperations(t *testing.T, commands []string, without string) (refused []string) {
	prefix := fmt.Sprintf("permissions-%d", time.Now().UnixNano())
	r.Grant(t, prefix, prefix, commands...)
	w := &watcher{t: t, realm: r, prefix: prefix}
	v := &visitor{t: t, realm: r, prefix: prefix}
	for name, o := range v.operations() {
		var err, failed, unusable error
		touched, at := false, name
		for began, again := time.Now(), 1; ; again++ {
			// Both are new: who already listens for messages asks otherwise.
			if v.operator, err = w.open("", false); err != nil {
				t.Fatal(err)
			}
			v.user, err = w.open(prefix, true)
			if failed = err; failed == nil {
				failed = o.run(at)
			}
			touched = w.touched.Swap(false)
			if !isUnanswered(failed) || time.Since(began) > patience {
				break
			}
			at = fmt.Sprint(name, again) // on a busy machine an answer may take longer than a request has
		}
		if failed != nil {
			eventually.Holds(patience, func() bool { unusable = o.look(at); return !isUnanswered(unusable) })
		}
		var failure, left *holdfast.StoreError
		switch {
		case failed == nil:
			continue
		case err != nil && strings.HasPrefix(err.Error(), "NOPERM"): // a client that could not even be made
		case !errors.As(failed, &failure) || failure.Kind != holdfast.StoreDenied:
			t.Errorf("%s: %v", name, failed)
			continue
		case !strings.Contains(strings.ToLower(failed.Error()), without):
			t.Errorf("%s: which command? %v", name, failed)
		case touched && !failure.MayHaveApplied:
			t.Errorf("%s: something was written: %v", name, failed)
		case errors.As(unusable, &left):
			t.Errorf("%s: cannot be used afterwards: %v", name, unusable)
		}
		refused = append(refused, name)
	}
	slices.Sort(refused)
	return refused
}

// Sometimes tests the commands that a user of a cluster needs at times only: ASKING, while a slot
// is on its way, and WAIT, for Config.Replicas. OnItsWay moves the present keys of a key's slot. It
// leaves the slot on its way until the function that it returns is called.
func Sometimes(t *testing.T, r Realm, onItsWay func(key string) (arrive func())) {
	all := append(Smallest(t, "on a cluster"), "asking", "wait")
	for _, without := range []string{"nothing", "asking", "wait"} {
		t.Run("without "+without, func(t *testing.T) {
			few := slices.DeleteFunc(slices.Clone(all), func(c string) bool { return c == without })
			prefix := "sometimes-" + without
			r.Grant(t, prefix, prefix, few...)
			open := func(replicas int) *holdfast.Client {
				store, err := r.Store(t, prefix, "pw")
				fatal.If(t, err)
				c, err := holdfast.New(store, &holdfast.Config{Prefix: prefix,
					Replicas: holdfast.Replicas{Count: replicas, Timeout: time.Second}})
				fatal.If(t, err)
				t.Cleanup(func() { _ = c.Close() })
				return c
			}
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			lease, err := open(1).Mutex("confirmed").Lock(ctx) // which asks again when the replica takes too long
			expect(t, err, without == "wait", "wait", true)
			if err == nil {
				expect(t, lease.Release(), false, "", false)
			}

			lease, err = open(0).Mutex("moved").Lock(ctx)
			fatal.If(t, err)
			arrive := onItsWay(prefix + ":{moved}")
			eventually.Holds(patience, func() bool {
				err = lease.Check(ctx)
				return !errors.Is(err, holdfast.ErrUnavailable)
			})
			arrive()
			expect(t, err, without == "asking", "asking", false)
			expect(t, lease.Release(), false, "", false)
		})
	}
}

// expect checks an error of what is refused for want of a command.
func expect(t *testing.T, err error, refused bool, command string, mayHaveApplied bool) {
	t.Helper()
	if !refused {
		if err != nil {
			t.Errorf("got %v", err)
		}
		return
	}
	var failure *holdfast.StoreError
	if !errors.As(err, &failure) || failure.Kind != holdfast.StoreDenied || failure.MayHaveApplied != mayHaveApplied ||
		!strings.Contains(err.Error(), "'"+command) {
		t.Errorf("got %v", err)
	}
}
