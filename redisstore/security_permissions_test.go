package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/storetest/redisserver"
)

// grant makes a user of a server who may touch what begins with a prefix, and run the commands.
func grant(t *testing.T, srv *redisserver.Server, user, prefix string, commands ...string) func(*redis.Options) {
	t.Helper()
	rule := []any{"ACL", "SETUSER", user, "reset", "on", ">pw", "~" + prefix + ":*", "resetchannels", "&" + prefix + ":*", "-@all"}
	for _, command := range commands {
		rule = append(rule, "+"+command)
	}
	must(t, srv, rule...)
	return func(o *redis.Options) { o.Username, o.Password = user, "pw" }
}

// documented is the table of SECURITY.md: for each command of the smallest user, what is refused without it.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	table := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.ReplaceAll(strings.TrimSpace(line), `\|`, "/"), "|")
		if len(cells) < 4 || !strings.HasPrefix(cells[1], " `+") {
			continue
		}
		command := strings.ReplaceAll(strings.Trim(cells[1], " `+"), "/", "|")
		table[command] = nil
		if what := strings.TrimSpace(cells[2]); what != "nothing" {
			table[command] = strings.Split(what, ", ")
		}
	}
	if len(table) < 20 {
		t.Fatalf("a table of %d commands in SECURITY.md", len(table))
	}
	return table
}

// Trap 47: the smallest user, command by command. With all of them everything works. Without one, what SECURITY.md says is refused
// as denied, and the rest works.
func TestPermissionsOneByOne(t *testing.T) {
	t.Parallel()
	table := documented(t)
	all := slices.Sorted(maps.Keys(table))
	t.Run("all", func(t *testing.T) {
		t.Parallel()
		if refused := refusedWith(t, all); len(refused) > 0 {
			t.Errorf("refused: %v", refused)
		}
	})
	for _, without := range all {
		t.Run("without "+without, func(t *testing.T) {
			t.Parallel()
			few := slices.DeleteFunc(slices.Clone(all), func(c string) bool { return c == without })
			want := slices.Sorted(slices.Values(table[without]))
			if got := refusedWith(t, few); !slices.Equal(got, want) {
				t.Errorf("without %s refused: %s\nSECURITY.md says: %s", without, strings.Join(got, ", "), strings.Join(want, ", "))
			}
		})
	}
}

// refusedWith tells which operations a user with these commands is refused.
func refusedWith(t *testing.T, commands []string) (refused []string) {
	t.Helper()
	srv := redisserver.Start(t)
	few := grant(t, srv, "few", "holdfast", commands...)
	config := &holdfast.Config{TTL: time.Second, ReleaseTimeout: 300 * time.Millisecond}
	u := &visitor{t: t, srv: srv, operator: locker(t, srv.Addr(), config), user: locker(t, srv.Addr(), config, few)}
	operations := u.operations()
	names := slices.Sorted(maps.Keys(operations))
	for _, name := range names {
		must(t, srv, "SCRIPT", "FLUSH") // whoever comes first loads a script
		err := operations[name](name)
		var failure *holdfast.StoreError
		switch {
		case errors.As(err, &failure) && failure.Kind == holdfast.StoreDenied && failure.Applied == holdfast.NotApplied:
			refused = append(refused, name)
		case err != nil:
			t.Errorf("%s: %v", name, err)
		}
	}
	return refused
}

// visitor is the user whose permissions are tried, and an operator who may all.
type visitor struct {
	t              *testing.T
	srv            *redisserver.Server
	operator, user *holdfast.Client
}

// operations are the things a client does, each on a name of its own: an error is what the user was told.
func (u *visitor) operations() map[string]func(name string) error {
	ctx := within(u.t, time.Minute)
	return map[string]func(string) error{
		"lock": func(n string) error { return u.held(u.user.Mutex(n).Lock(ctx)) },
		"try": func(n string) error {
			lease := u.must(u.operator.Mutex(n).Lock(ctx))
			defer release(u.t, lease)
			_, err := u.user.Mutex(n).TryLock(ctx)
			if errors.Is(err, holdfast.ErrHeld) {
				return nil
			}
			return err
		},
		"wait": func(n string) error { return u.wait(n, u.operator.Mutex(n), u.user.Mutex(n)) },
		"hand on": func(n string) error {
			return u.wait(n, u.user.Mutex(n), u.operator.Mutex(n))
		},
		"owner": func(n string) error {
			lease := u.must(u.operator.Mutex(n, holdfast.WithOwner("o"), holdfast.WithTTL(time.Minute)).Lock(ctx))
			defer release(u.t, lease)
			return u.held(u.user.Mutex(n, holdfast.WithOwner("o")).Lock(ctx))
		},
		"min hold": func(n string) error {
			return u.held(u.user.Mutex(n, holdfast.WithMinHold(50*time.Millisecond)).Lock(ctx))
		},
		"resume": func(n string) error {
			lease := u.must(u.operator.Mutex(n).Lock(ctx))
			return u.held(u.user.Mutex(n).Resume(ctx, lease.Owner(), lease.Token()))
		},
		"read":    func(n string) error { return u.held(u.user.RWMutex(n).RLock(ctx)) },
		"permits": func(n string) error { return u.held(u.user.Semaphore(n, 3).Acquire(ctx, 2)) },
		"resize": func(n string) error {
			lease := u.must(u.operator.Semaphore(n, 3).Acquire(ctx, 2))
			defer release(u.t, lease)
			return u.user.Semaphore(n, 3).Resize(ctx, 4)
		},
		"downgrade": func(n string) error {
			lease, err := u.user.RWMutex(n).Lock(ctx)
			if err != nil {
				return err
			}
			return errors.Join(lease.Downgrade(ctx), lease.Release(ctx))
		},
		"latch": func(n string) error {
			l := u.user.Latch(n)
			if err := l.Set(ctx, 1); err != nil {
				return err
			}
			return l.CountDown(ctx)
		},
		"latch wait": func(n string) error {
			if err := u.operator.Latch(n).Set(ctx, 1); err != nil {
				u.t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- u.user.Latch(n).Wait(ctx) }()
			select {
			case err := <-done:
				return err
			case <-time.After(20 * time.Millisecond):
			}
			if err := u.operator.Latch(n).CountDown(ctx); err != nil {
				u.t.Fatal(err)
			}
			return <-done
		},
		"lead": func(n string) error { return u.held(u.user.Election(n).Campaign(ctx)) },
		"leader": func(n string) error {
			lease := u.must(u.operator.Election(n).Campaign(ctx))
			defer release(u.t, lease)
			_, err := u.user.Election(n).Leader(ctx)
			return err
		},
		"group": func(n string) error { return u.held(u.user.All([]string{n + "1", n + "2"}).Lock(ctx)) },
	}
}

func (u *visitor) must(lease *holdfast.Lease, err error) *holdfast.Lease {
	u.t.Helper()
	if err != nil {
		u.t.Fatal(err)
	}
	return lease
}

// held looks after a lease of the user, and gives it back.
func (u *visitor) held(lease *holdfast.Lease, err error) error {
	if err != nil {
		return err
	}
	return errors.Join(lease.Check(context.Background()), lease.Release(context.Background()))
}

// wait lets one wait for the other.
func (u *visitor) wait(name string, first, second *holdfast.Mutex) error {
	lease, err := first.Lock(within(u.t, patience))
	if err != nil {
		return err
	}
	next := claim(within(u.t, patience), second)
	eventually(u.t, name+" is waited for", func() bool {
		select {
		case <-next.done:
			return true
		default:
			// The operator asks once more when it listens; before that, the release takes a shorter way, with ZCOUNT.
			asked, _ := u.srv.Do("ZCOUNT", keyOf(name)+":line", "-inf", "(0")
			return inLine(u.srv, name) == 1 && (name != "hand on" || asked == int64(1))
		}
	})
	if err := lease.Release(context.Background()); err != nil {
		<-next.done
		return errors.Join(err, u.held(next.lease, next.err))
	}
	select {
	case <-next.done:
	case <-time.After(patience):
		return fmt.Errorf("%s is stuck", name)
	}
	return u.held(next.lease, next.err)
}
