package quorum

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/store"
)

// TestACL: the permissions of docs/quorum.md are enough (trap 47), and without +info as well.
func TestACL(t *testing.T) {
	page, err := os.ReadFile("../../docs/quorum.md")
	if err != nil {
		t.Fatal(err)
	}
	rules := regexp.MustCompile(`(?s)reset on >PASSWORD.*?\n` + "```").FindString(string(page))
	rules = strings.NewReplacer("PASSWORD", "secret", "holdfast:", "proof:", "```", "").Replace(rules)
	for name, rules := range map[string]string{"as documented": rules, "without info": strings.ReplaceAll(rules, "+info", "")} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 3)
			stores := make([]store.Store, len(r.masters))
			for i, master := range r.masters {
				args := []any{"ACL", "SETUSER", "small"}
				for _, rule := range strings.Fields(rules) {
					args = append(args, rule)
				}
				if _, err := master.Do(args...); err != nil {
					t.Fatal(err)
				}
				rdb := redis.NewClient(&redis.Options{Addr: master.Addr(), Username: "small", Password: "secret", DisableIdentity: true})
				t.Cleanup(func() { _ = rdb.Close() })
				stores[i] = redisstore.New(rdb)
			}
			open := func() *holdfast.Client {
				client, err := holdfast.NewQuorum(stores, &holdfast.Config{Prefix: "proof"})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if err := client.Close(); err != nil {
						t.Error(err)
					}
				})
				return client
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			a, b := open(), open()
			lease, err := a.Mutex("x", holdfast.WithMinHold(10*time.Millisecond)).Lock(ctx)
			if err != nil {
				t.Fatal(err)
			}
			got := make(chan error, 1)
			go func() {
				next, err := b.Mutex("x").Lock(ctx)
				if err == nil {
					err = next.Release(t.Context())
				}
				got <- err
			}()
			r.until("the other waits at all masters", func() bool {
				for _, master := range r.masters {
					if n, _ := master.Do("ZCARD", "proof:{%quorum}+x"); n != int64(1) {
						return false
					}
				}
				return true
			})
			r.until("a majority answers", func() bool {
				err := lease.Check(t.Context())
				if err != nil && !unanswered(err) {
					t.Fatal(err)
				}
				return err == nil
			})
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
			if err := <-got; err != nil {
				t.Error(err)
			}
		})
	}
}
