package security_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/certificate"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/internal/testing/permissions"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/lockinfo"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// TestMain fails when a goroutine is left behind (trap 33).
func TestMain(m *testing.M) {
	harness.Quiet()
	os.Exit(leak.Main(m))
}

// A tenant with a prefix and a user of its own cannot see, touch, hear or tell another's locks;
// each has all it needs.
func TestTenantReachesNoOther(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	commands := tenants(t)
	as := map[string]func(*redis.Options){}
	for _, tenant := range []string{"a", "ab"} {
		as[tenant] = grant(t, srv, tenant, tenant, commands...)
	}
	client := func(user, prefix string) *holdfast.Client {
		return harness.Locker(t, srv.Addr(), &holdfast.Config{Prefix: prefix}, as[user])
	}
	mine, theirs := client("a", "a"), client("ab", "ab")
	held, alike := harness.Lock(t, theirs.Mutex("n")), harness.Lock(t, mine.Mutex("n")) // one name, two locks
	fatal.If(t, errors.Join(harness.Checked(t, held), harness.Checked(t, alike)))
	next := harness.Claim(harness.Within(t, harness.Patience), client("ab", "ab").Mutex("n"))
	harness.Eventually(t, "one waits",
		func() bool { return harness.Must(t, srv, "EXISTS", "ab:{n}:queue") == int64(1) })
	channel := ""
	harness.Eventually(t, "it listens", func() bool {
		channels := harness.Must(t, srv, "PUBSUB", "CHANNELS", "ab:@*").([]any)
		if len(channels) == 1 {
			channel = channels[0].(string)
		}
		return channel != ""
	})
	before := harness.Must(t, srv, "DUMP", "ab:{n}")

	for _, prefix := range []string{"ab", "holdfast", "b"} {
		for op, do := range map[string]func(*holdfast.Client) error{
			"lock": func(c *holdfast.Client) error { return harness.Given(c.Mutex("n").TryLock(t.Context())) },
			"wait": func(c *holdfast.Client) error {
				return harness.Given(c.Mutex("n").Lock(harness.Within(t, harness.Patience)))
			},
			"break": func(c *holdfast.Client) error { return c.Break(t.Context(), "n", held.Token()) },
			"group": func(c *holdfast.Client) error {
				return harness.Given(c.All([]string{"n", "m"}).TryLock(t.Context()))
			},
			"inspect": func(c *holdfast.Client) error { _, err := c.Inspect(t.Context(), "n"); return err },
			"leader":  func(c *holdfast.Client) error { _, err := c.Election("n").Leader(t.Context()); return err },
			"latch":   func(c *holdfast.Client) error { return c.Latch("n").Set(t.Context(), 1) },
			"election": func(c *holdfast.Client) error {
				return harness.Given(c.Election("n").TryCampaign(t.Context()))
			},
		} {
			var failure *holdfast.StoreError
			c := client("a", prefix)
			if err := harness.Answered(t, func() error { return do(c) }); !errors.As(err, &failure) ||
				failure.Kind != holdfast.StoreDenied {
				t.Errorf("%s under the prefix %s: %v", op, prefix, err)
			}
		}
	}
	rdb := harness.Client(t, srv.Addr(), as["a"])
	for _, command := range [][]any{{"GET", "ab:{n}"}, {"DEL", "ab:{n}"}, {"SET", "ab:{n}", "x"},
		{"ZRANGE", "ab:{n}:queue", 0, -1}, {"EXISTS", "ab:{n}"},
		{"PUBLISH", channel, "x"}, {"SUBSCRIBE", channel}, {"KEYS", "*"}, {"SCAN", 0}, {"FLUSHALL"},
		{"PSUBSCRIBE", "*"}, {"MONITOR"},
		{"EVAL", "return redis.call('GET', KEYS[1])", 1, "ab:{n}"}, {"EVAL", "return redis.call('GET', 'ab:{n}')", 0},
		{"EVAL", "return redis.call('PUBLISH', '" + channel + "', 'x')", 0}} {
		if err := rdb.Do(t.Context(), command...).Err(); err == nil || errors.Is(err, redis.Nil) {
			t.Errorf("%v is allowed", command)
		}
	}
	if harness.Must(t, srv, "DUMP", "ab:{n}") != before {
		t.Error("it was touched")
	}
	harness.Release(t, held)
	harness.HandBack(t, next.Got(t))
	harness.Release(t, alike)
}

// tenants returns the commands of a tenant: all of the smallest user but SCAN.
func tenants(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(permissions.Smallest(t, "refused without it"), func(c string) bool { return c == "scan" })
}

// SCAN is not limited by patterns of keys: a user that has it sees the names of all keys, and no
// more. Without it List says what is missing, and Inspect works.
func TestTenantWithScanSeesKeysOfOthers(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	with, without := grant(t, srv, "with", "with", append(tenants(t), "scan")...), grant(t, srv, "without", "without",
		tenants(t)...)
	theirs := harness.Lock(t, harness.Locker(t, srv.Addr(), &holdfast.Config{Prefix: "theirs"}).Mutex("n"))
	rdb := harness.Client(t, srv.Addr(), with)
	if keys, _, err := rdb.Scan(t.Context(), 0, "theirs*", 1000).Result(); err != nil ||
		!slices.Contains(keys, "theirs:{n}") {
		t.Errorf("it sees %q, %v", keys, err)
	}
	if err := rdb.Get(t.Context(), "theirs:{n}").Err(); err == nil {
		t.Error("it reads the key of another")
	}
	for prefix, as := range map[string]func(*redis.Options){"with": with, "without": without} {
		c := harness.Locker(t, srv.Addr(), &holdfast.Config{Prefix: prefix}, as)
		mine := harness.Lock(t, c.Mutex("n"))
		if info, err := c.Inspect(t.Context(), "n"); err != nil || info.State() != lockinfo.StateHeld {
			t.Errorf("Inspect: %+v, %v", info, err)
		}
		var listed []string
		var failed error
		for info, err := range c.List(t.Context(), holdfast.ListOptions{}) {
			if failed = err; err == nil {
				listed = append(listed, info.Name)
			}
		}
		var denied *holdfast.StoreError
		switch {
		case prefix == "with" && (failed != nil || !slices.Equal(listed, []string{"n"})):
			t.Errorf("List: %q, %v", listed, failed)
		case prefix == "without" && (!errors.As(failed, &denied) || denied.Kind != holdfast.StoreDenied ||
			denied.MayHaveApplied ||
			!strings.Contains(failed.Error(), "+scan") || !strings.Contains(failed.Error(), "Inspect")):
			t.Errorf("List: %q, %v", listed, failed)
		}
		harness.Release(t, mine)
	}
	harness.Release(t, theirs)
}

// The id of a hold is 128 random bits: none comes twice, and each bit is as often set as not.
func TestHoldIDsAreRandom(t *testing.T) {
	t.Parallel()
	c := harness.Locker(t, redisserver.Start(t).Addr(), nil)
	const n = 2000
	var set [128]int
	seen := map[string]bool{}
	for range n {
		lease := harness.Lock(t, c.Mutex("n"))
		id, err := base64.RawURLEncoding.DecodeString(lease.Owner())
		if err != nil || len(id) != 16 || seen[lease.Owner()] {
			t.Fatalf("id %q, seen before: %v", lease.Owner(), seen[lease.Owner()])
		}
		seen[lease.Owner()] = true
		for bit := range set {
			set[bit] += int(id[bit/8]) >> (bit % 8) & 1
		}
		harness.Release(t, lease)
	}
	for bit, k := range set {
		if k < n*2/5 || k > n*3/5 { // nine standard deviations
			t.Errorf("bit %d was set in %d of %d", bit, k, n)
		}
	}
}

// Over TLS, requests and messages alike. The command has certificates of clients, too.
func TestTLSCarriesAll(t *testing.T) {
	t.Parallel()
	cert, key := certificate.Write(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	fatal.If(t, err)
	addr := l.Addr().String()
	l.Close()
	_, port, _ := net.SplitHostPort(addr)
	srv, err := redisserver.Run(t.Context(), "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key,
		"--tls-auth-clients", "no")
	if err != nil {
		t.Skipf("a server without TLS: %v", err)
	}
	t.Cleanup(func() { _ = srv.Close() })
	with := func(config *tls.Config) *holdfast.Client {
		return harness.Locker(t, addr, nil, func(o *redis.Options) { o.TLSConfig = config })
	}
	pem, err := os.ReadFile(cert)
	fatal.If(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	good := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	holder := harness.Lock(t, with(good).Mutex("n"))
	next := harness.Claim(harness.Within(t, harness.Patience), with(good).Mutex("n"))
	harness.Waiting(t, srv, "n", 1)
	harness.Eventually(t, "it listens", func() bool { return harness.Listening(t, srv) == 1 })
	harness.Release(t, holder)
	harness.HandBack(t, next.Got(t))
	for name, config := range map[string]*tls.Config{
		"unknown authority": {MinVersion: tls.VersionTLS12},
		"without TLS":       nil,
	} {
		lease, err := with(config).Mutex("n").TryLock(harness.Within(t, harness.Patience))
		if lease != nil || !errors.Is(err, holdfast.ErrUnavailable) && !strings.Contains(err.Error(), "certificate") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// grant makes a user of a server with permission for the keys that begin with a prefix, and for the
// commands.
func grant(t *testing.T, srv *redisserver.Server, user, prefix string, commands ...string) func(*redis.Options) {
	t.Helper()
	permissions.Realm{Servers: []func(...any) (any, error){srv.Do}}.Grant(t, user, prefix, commands...)
	return func(o *redis.Options) { o.Username, o.Password = user, "pw" }
}

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
	for word := range strings.FieldsSeq(shown[0][1]) {
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
