package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/lockinfo"
	"github.com/holdfast-go/holdfast/proof/harness"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/store"
)

// Trap 47: the permissions of docs/quorum.md, taken away one by one. At one master of three,
// everything goes on. At all of them it goes on (the scripts are there already), or is refused as
// denied: nobody is stuck, two never hold, and nothing else is wrong. For a single server it is
// TestPermissionsOneByOne of redisstore.
func TestQuorumPermissions(t *testing.T) {
	harness.Long(t)
	page, err := os.ReadFile("../../docs/quorum.md")
	if err != nil {
		t.Fatal(err)
	}
	rules := strings.Fields(strings.TrimSuffix(regexp.MustCompile("(?s)reset on >PASSWORD.*?\n```").FindString(string(page)), "```"))
	var commands []string
	for _, rule := range rules {
		if strings.HasPrefix(rule, "+") {
			commands = append(commands, rule)
		}
	}
	if len(commands) < 20 {
		t.Fatalf("a list of %d commands in docs/quorum.md", len(commands))
	}
	b := harness.Deploy(t, harness.Quorum)
	whole := b.Under(t, "holdfast:whole")
	b.Each(func(srv *redisserver.Server) { permitSmallUser(t, srv, rules) })
	asks := openAsSmallUser(t, whole, false)
	if err := harness.Answered(t, func() error { return asks.Ready(t.Context()) }); err != nil {
		t.Error("with all permissions: ", err)
	}
	_ = asks.Close()
	var works, refused, wrong []string
	for _, without := range commands {
		few := slices.DeleteFunc(slices.Clone(rules), func(r string) bool { return r == without })
		for name, at := range map[string]int{"one": 1, "all": 3} {
			b := b.Under(t, "holdfast:"+fmt.Sprint(strings.TrimPrefix(without, "+"), ".", at))
			for i, srv := range b.Masters {
				if i < at {
					permitSmallUser(t, srv, few)
				} else {
					permitSmallUser(t, srv, rules)
				}
			}
			err := lockTwice(t, b, at == len(b.Masters))
			switch {
			case err == nil && name == "all":
				works = append(works, without)
			case err == nil:
			case name == "all" && isDenied(err):
				refused = append(refused, without)
			default:
				wrong = append(wrong, without)
				t.Errorf("without %s at %s: %v", without, name, err)
			}
		}
	}
	t.Logf("%d permissions, one after the other: at one master of three nobody noticed; at all, %d are refused as "+
		"such without it (%s), and it goes on without %d (%s); %d wrong",
		len(commands), len(refused), strings.Join(refused, " "), len(works), strings.Join(works, " "), len(wrong))
}

// What docs/quorum.md says is refused to an operator without a command is refused, as denied, and
// nothing else is.
func TestQuorumPermissionsOfOperators(t *testing.T) {
	harness.Long(t)
	page, err := os.ReadFile("../../docs/quorum.md")
	if err != nil {
		t.Fatal(err)
	}
	table := map[string]string{} // what is refused, by the command
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\+[a-z]+)` \\| (.*) \\|$").FindAllStringSubmatch(string(page), -1) {
		table[row[1]] = row[2]
	}
	if len(table) < 10 {
		t.Fatalf("%d commands in the table", len(table))
	}
	b := harness.Deploy(t, harness.Quorum).Under(t, "holdfast:operators")
	holder := b.Client(t, holdfast.Config{TrustNewNodes: true}, nil)
	for without, want := range table {
		rules := []string{"reset", "on", ">PASSWORD", "~holdfast:*", "&holdfast:*", "-@all"}
		for command := range table {
			if command != without {
				rules = append(rules, command)
			}
		}
		b.Each(func(srv *redisserver.Server) {
			harness.Must(t, srv, "SCRIPT", "FLUSH") // all are asked for whole
			permitSmallUser(t, srv, rules)
		})
		client, lease := openAsSmallUser(t, b, true), harness.Lock(t, holder.Mutex("x"))
		for what, run := range map[string]func() error{
			"inspect": func() error { _, err := client.Inspect(t.Context(), "x"); return err },
			"list": func() (err error) {
				for _, err = range client.List(t.Context(), holdfast.ListOptions{}) {
				}
				return err
			},
			"break": func() error { return client.Break(t.Context(), "x", lease.Token()) },
		} {
			err := harness.Answered(t, run)
			if refused := isDenied(err); refused != strings.Contains(want, what) || err != nil && !refused {
				t.Errorf("%s without %s: %v, want refused: %v", what, without, err, !refused)
			}
		}
		_, _ = client.Close(), lease.Release()
	}
}

// permitSmallUser lets the user small do what the rules of the page say, and no more.
func permitSmallUser(t *testing.T, srv *redisserver.Server, rules []string) {
	t.Helper()
	acl := []any{"ACL", "SETUSER", "small"}
	for _, rule := range rules {
		acl = append(acl, strings.ReplaceAll(rule, "PASSWORD", "secret"))
	}
	harness.Must(t, srv, acl...)
}

// isDenied reports whether an error says that the user may not.
func isDenied(err error) bool {
	var none *holdfast.QuorumError
	if !errors.As(err, &none) {
		var failure *holdfast.StoreError
		return errors.As(err, &failure) && failure.Kind == holdfast.StoreDenied
	}
	return slices.ContainsFunc(none.Masters, func(n lockinfo.Master) bool {
		var failure *holdfast.StoreError
		return errors.As(n.Err, &failure) && failure.Kind == holdfast.StoreDenied
	})
}

// openAsSmallUser opens a client of the user small, which the caller closes.
func openAsSmallUser(t *testing.T, b *harness.Deployment, trust bool) *holdfast.Client {
	t.Helper()
	var stores []store.Store
	for _, srv := range b.Masters {
		as := func(o *redis.Options) { o.Username, o.Password, o.DisableIdentity = "small", "secret", true }
		stores = append(stores, redisstore.New(harness.Client(t, srv, as)))
	}
	c, err := holdfast.NewQuorum(stores, &holdfast.Config{Prefix: b.Prefix, TTL: 6 * time.Second,
		MaxTTL: 5 * time.Minute, TrustNewNodes: trust})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// lockTwice lets one hold while another waits, as the user small. Where all masters may refuse, a
// refusal is the answer; that of one alone is none: with a second that is slow, the same is asked
// again.
func lockTwice(t *testing.T, b *harness.Deployment, refusing bool) error {
	one, two := openAsSmallUser(t, b, false), openAsSmallUser(t, b, false)
	defer func() { _, _ = one.Close(), two.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
	defer cancel()
	lease, err := one.Mutex("x").Lock(ctx)
	if err != nil {
		return err
	}
	again := func(err error) bool { return isUnanswered(err) && !(refusing && isDenied(err)) && ctx.Err() == nil }
	_, err = two.Mutex("x").TryLock(ctx)
	for again(err) {
		_, err = two.Mutex("x").TryLock(ctx)
	}
	if err == nil {
		return errors.New("two hold")
	} else if !errors.Is(err, holdfast.ErrHeld) {
		return errors.Join(err, lease.Release())
	}
	next := goLater(func() (*holdfast.Lease, error) { return two.Mutex("x").Lock(ctx) })
	pause(30 * time.Millisecond)
	err = lease.Check(ctx)
	for again(err) {
		err = lease.Check(ctx)
	}
	err = errors.Join(err, lease.Release())
	second, fails := next()
	if fails != nil {
		return errors.Join(err, fails)
	}
	return errors.Join(err, second.Release())
}
