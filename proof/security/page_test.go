package security_test

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// The command of SECURITY.md makes a user that locks below its prefix, and nowhere else.
func TestPageTenantIsKeptApart(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?s)```redis\r?\n(.*?)\r?\n```").FindAllStringSubmatch(string(page), -1)
	if len(shown) != 1 {
		t.Fatalf("SECURITY.md has %d commands", len(shown))
	}
	srv := redisserver.Start(t)
	var words []any
	for _, word := range strings.Fields(shown[0][1]) {
		if word == "COMMANDS" {
			for _, command := range tenants(t) {
				words = append(words, "+"+command)
			}
			continue
		}
		words = append(words, strings.ReplaceAll(word, "PASSWORD", "pw"))
	}
	harness.Must(t, srv, words...)
	as := func(o *redis.Options) { o.Username, o.Password = "billing", "pw" }
	harness.Lock(t, harness.Locker(t, srv.Addr(), &holdfast.Config{Prefix: "billing"}, as).Mutex("n"))
	for _, prefix := range []string{"holdfast", "billing2"} {
		var failure *holdfast.StoreError
		_, err := harness.Locker(t, srv.Addr(), &holdfast.Config{Prefix: prefix}, as).Mutex("n").TryLock(t.Context())
		if !errors.As(err, &failure) || failure.Kind != holdfast.StoreDenied {
			t.Errorf("below %s: %v", prefix, err)
		}
	}
}
