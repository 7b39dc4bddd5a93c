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
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
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
	rules := smallUserRules(t)
	b := harness.Deploy(t, harness.Quorum)
	whole := b.Under(t, "holdfast:whole")
	b.Each(func(srv *redisserver.Server) { permitSmallUser(t, srv, rules) })
	asks := openAsSmallUser(t, whole, false)
	if err := harness.Answered(t, func() error { return asks.Ready(t.Context()) }); err != nil {
		t.Error("with all permissions: ", err)
	}
	var works, refused, wrong []string
	commands := slices.DeleteFunc(slices.Clone(rules), func(r string) bool { return r[0] != '+' })
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
			err := lockTwice(t, b, name == "all")
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
	rows := regexp.MustCompile("(?m)^\\| `(\\+[a-z]+)` \\| (.*) \\|$").FindAllStringSubmatch(readQuorumPage(t), -1)
	if len(rows) < 10 {
		t.Fatalf("%d commands in the table", len(rows))
	}
	none := slices.DeleteFunc(smallUserRules(t), func(r string) bool { return r[0] == '+' })
	b := harness.Deploy(t, harness.Quorum).Under(t, "holdfast:operators")
	holder := b.Client(t, holdfast.Config{TrustNewNodes: true})
	for _, row := range rows {
		without, want := row[1], row[2]
		rules := slices.Clone(none)
		for _, other := range rows {
			if other[1] != without {
				rules = append(rules, other[1])
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

func readQuorumPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/quorum.md")
	fatal.If(t, err)
	return string(page)
}

// smallUserRules returns what docs/quorum.md says of the smallest user, after its name.
func smallUserRules(t *testing.T) []string {
	t.Helper()
	block := regexp.MustCompile("(?s)reset on >PASSWORD[^`]*").FindString(readQuorumPage(t))
	rules := strings.Fields(strings.ReplaceAll(block, "PASSWORD", "secret"))
	if len(rules) < 25 {
		t.Fatalf("%d rules in docs/quorum.md", len(rules))
	}
	return rules
}

// permitSmallUser lets the user small do what the rules say, and no more.
func permitSmallUser(t *testing.T, srv *redisserver.Server, rules []string) {
	t.Helper()
	acl := []any{"ACL", "SETUSER", "small"}
	for _, rule := range rules {
		acl = append(acl, rule)
	}
	harness.Must(t, srv, acl...)
}

// isDenied reports whether an error says that the user may not.
func isDenied(err error) bool {
	denied := func(err error) bool {
		var failure *holdfast.StoreError
		return errors.As(err, &failure) && failure.Kind == holdfast.StoreDenied
	}
	var none *holdfast.QuorumError
	if !errors.As(err, &none) {
		return denied(err)
	}
	return slices.ContainsFunc(none.Masters, func(n lockinfo.Master) bool { return denied(n.Err) })
}

func openAsSmallUser(t *testing.T, b *harness.Deployment, trust bool) *holdfast.Client {
	t.Helper()
	var stores []store.Store
	for _, srv := range b.Masters {
		as := func(o *redis.Options) { o.Username, o.Password, o.DisableIdentity = "small", "secret", true }
		stores = append(stores, redisstore.New(harness.Client(t, srv.Addr(), as)))
	}
	c, err := holdfast.NewQuorum(stores, &holdfast.Config{Prefix: b.Prefix, TTL: 6 * time.Second,
		MaxTTL: 5 * time.Minute, TrustNewNodes: trust})
	fatal.If(t, err)
	t.Cleanup(func() { _ = c.Close() })
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
	answer := func(ask func() error) error {
		err := ask()
		for isUnanswered(err) && !(refusing && isDenied(err)) && ctx.Err() == nil {
			err = ask()
		}
		return err
	}
	lease, err := one.Mutex("x").Lock(ctx)
	if err != nil {
		return err
	}
	err = answer(func() error { return harness.Given(two.Mutex("x").TryLock(ctx)) })
	if err == nil {
		return errors.New("two hold")
	} else if !errors.Is(err, holdfast.ErrHeld) {
		return errors.Join(err, lease.Release())
	}
	next := harness.Claim(ctx, two.Mutex("x"))
	pause(30 * time.Millisecond)
	err = errors.Join(answer(func() error { return lease.Check(ctx) }), lease.Release())
	<-next.Done
	return errors.Join(err, harness.Given(next.Lease, next.Err))
}
