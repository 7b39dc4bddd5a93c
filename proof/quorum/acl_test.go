package quorum

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/proof/harness"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/store"
)

// TestACLOfOperators: what docs/quorum.md says is refused to an operator without a command is
// refused, as denied and by each master, and nothing else is.
func TestACLOfOperators(t *testing.T) {
	page, err := os.ReadFile("../../docs/quorum.md")
	if err != nil {
		t.Fatal(err)
	}
	table := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `\\+([a-z]+)` \\| (.*) \\|$").FindAllStringSubmatch(string(page),
		-1) {
		table[row[1]] = row[2]
	}
	if len(table) < 10 {
		t.Fatalf("%d commands in the table", len(table))
	}
	r := newRig(t, 3)
	operator := r.client(nil, nil)
	for without, want := range table {
		t.Run(without, func(t *testing.T) {
			var rules []any
			for command := range table {
				if command != without {
					rules = append(rules, "+"+command)
				}
			}
			stores := make([]store.Store, len(r.masters))
			for i, master := range r.masters {
				if _, err := master.Do("SCRIPT", "FLUSH"); err != nil { // all are asked for whole
					t.Fatal(err)
				}
				args := append([]any{"ACL", "SETUSER", "small", "reset", "on", ">secret", "~proof:*", "&proof:*",
					"-@all"}, rules...)
				if _, err := master.Do(args...); err != nil {
					t.Fatal(err)
				}
				rdb := redis.NewClient(&redis.Options{Addr: master.Addr(), Username: "small", Password: "secret",
					DisableIdentity: true})
				t.Cleanup(func() { _ = rdb.Close() })
				stores[i] = redisstore.New(rdb)
			}
			client, err := holdfast.NewQuorum(stores, &holdfast.Config{Prefix: "proof", TrustNewNodes: true,
				MaxTTL: maxTTL})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = client.Close() }()
			lease, err := operator.Mutex("x").Lock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = lease.Release() }()
			for what, run := range map[string]func() error{
				"inspect": func() error { _, err := client.Inspect(t.Context(), "x"); return err },
				"list": func() error {
					for _, err := range client.List(t.Context(), holdfast.ListOptions{}) {
						if err != nil {
							return err
						}
					}
					return nil
				},
				"break": func() error { return client.Break(t.Context(), "x", lease.Token()) },
			} {
				err := run()
				for late := time.Now().Add(harness.Patience); unanswered(err) && time.Now().Before(late); {
					err = run()
				}
				if refused := denied(err); refused != strings.Contains(want, what) || err != nil && !refused {
					t.Errorf("%s: %v, want refused: %v", what, err, !refused)
				}
			}
		})
	}
}

// denied reports whether all masters of a quorum refused for want of a permission.
func denied(err error) bool {
	var quorum *holdfast.QuorumError
	if !errors.As(err, &quorum) {
		return false
	}
	for _, n := range quorum.Masters {
		var refused *holdfast.StoreError
		if !errors.As(n.Err, &refused) || refused.Kind != holdfast.StoreDenied {
			return false
		}
	}
	return true
}
