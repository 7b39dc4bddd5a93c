package security_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/lockinfo"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// stacksOf asks for the stacks of a name, until one has frames or says why not in some words.
func stacksOf(t *testing.T, c *holdfast.Client, name, why string) (all []lockinfo.Stack) {
	t.Helper()
	harness.Eventually(t, "the stacks of "+name, func() bool {
		var err error
		if all, err = c.Stacks(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		return len(all) > 0 && (len(all[0].Frames) > 0 || why != "" && strings.Contains(all[0].Why, why))
	})
	return all
}

// The lines that hold every kind of lock are told, by whatever leads to the servers. No path of
// this machine is.
func TestStacksNameTheLine(t *testing.T) {
	t.Parallel()
	for _, topology := range []string{harness.Single, harness.Sentinel, harness.Cluster, harness.Quorum} {
		t.Run(topology, func(t *testing.T) {
			t.Parallel()
			d := harness.Deploy(t, topology).Under(t, "stacks")
			holder, asker := d.Client(t, holdfast.Config{Remote: true}), d.Client(t, holdfast.Config{})
			takeEach(t, holder, topology != harness.Quorum)
			harness.Eventually(t, "both readers", func() bool { // of one hold, or of two if one came late
				readers := 0
				for _, stack := range stacksOf(t, asker, "reader", "") {
					readers += stack.Leases
				}
				return readers == 2
			})
			for _, name := range []string{"mutex", "reader", "election", "one", "two", "permits", "attached"} {
				if topology == harness.Quorum && name == "permits" {
					continue
				}
				stack := stacksOf(t, asker, name, "")[0]
				first := stack.Frames[0]
				want := "proof/security_test.takeEach"
				if !strings.Contains(first.Function, want) || first.File != "stacks_test.go" || first.Line == 0 ||
					stack.Why != "" || stack.Hold.Label == "" || stack.Age < 0 {
					t.Errorf("%s: %+v", name, stack)
				}
				text := fmt.Sprint(stack.Frames)
				if strings.Contains(text, " /") || strings.Contains(text, "internal/engine") {
					t.Errorf("%s: %s", name, text)
				}
			}
		})
	}
}

// takeEach takes a lock of each kind.
func takeEach(t *testing.T, c *holdfast.Client, permits bool) {
	t.Helper()
	ctx := harness.Within(t, harness.Patience)
	keep := func(lease *holdfast.Lease, err error) *holdfast.Lease {
		t.Helper()
		fatal.If(t, err)
		t.Cleanup(func() { _ = lease.Release() })
		return lease
	}
	keep(c.Mutex("mutex").Lock(ctx))
	keep(c.RWMutex("reader").RLock(ctx))
	keep(c.RWMutex("reader").RLock(ctx))
	keep(c.Election("election").Campaign(ctx))
	keep(c.All([]string{"one", "two"}).Lock(ctx))
	if permits {
		keep(c.Semaphore("permits", 3).Acquire(ctx, 2))
	}
	ticket, err := keep(c.Mutex("attached").Lock(ctx)).Detach()
	fatal.If(t, err)
	keep(c.Attach(ctx, ticket))
}

// Without Remote a client hears no question, and a holder with it publishes nothing while nobody
// asks. A holder that does not answer is told as one.
func TestRemoteCostsNothingWhileNobodyAsks(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	heard := func() int { return len(harness.Must(t, srv, "PUBSUB", "CHANNELS", "holdfast-remote:*").([]any)) }
	off, on := harness.Locker(t, srv.Addr(), nil), harness.Locker(t, srv.Addr(), &holdfast.Config{Remote: true})
	harness.Lock(t, off.Mutex("off"))
	harness.Lock(t, off.Mutex("other"))
	if all := stacksOf(t, off, "off", "no process answered"); len(all) != 1 || heard() != 0 {
		t.Errorf("%+v, %d channels", all, heard())
	}
	if heard() != 0 {
		t.Error("a client without leases listens")
	}
	asked := srv.CommandStats()["publish"]
	harness.Lock(t, on.Mutex("on"))
	harness.Eventually(t, "it listens", func() bool { return heard() == 1 })
	for range 20 {
		harness.Release(t, harness.Lock(t, on.Mutex("free")))
	}
	if n := srv.CommandStats()["publish"] - asked; n != 0 {
		t.Errorf("%d messages were published, and nobody asked", n)
	}
	if all := stacksOf(t, off, "on", ""); len(all) != 1 || all[0].Leases != 1 {
		t.Errorf("%+v", all)
	}
	if all, err := off.Stacks(t.Context(), "free"); err != nil || len(all) != 0 {
		t.Errorf("of a free name: %+v, %v", all, err)
	}
}

// Who may lock may neither ask nor answer: that takes channels of its own. Locks work all the same.
func TestStacksNeedAPermissionOfTheirOwn(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	as := grant(t, srv, "billing", "billing", tenants(t)...)
	var log syncBuffer
	holder := harness.Locker(t, srv.Addr(), &holdfast.Config{Prefix: "billing", Remote: true,
		Logger: slog.New(slog.NewTextHandler(&log, nil))}, as)
	harness.Lock(t, holder.Mutex("n"))
	var denied *holdfast.StoreError
	_, err := holder.Stacks(t.Context(), "n")
	if !errors.As(err, &denied) || denied.Kind != holdfast.StoreDenied ||
		!strings.Contains(err.Error(), "billing-remote:answer:") {
		t.Errorf("who may lock asks: %v", err)
	}
	harness.Eventually(t, "a warning", func() bool { return strings.Contains(log.String(), "billing-remote:ask") })
	harness.Release(t, harness.Lock(t, holder.Mutex("m")))

	// Selectors tell those who ask from those who answer.
	grants := map[string][]any{
		"answers": {"(~* -@all +subscribe +unsubscribe &billing-remote:ask)", "(-@all +publish &billing-remote:answer:*)"},
		"asks":    {"(-@all +subscribe +unsubscribe &billing-remote:answer:*)", "(-@all +publish &billing-remote:ask)"},
		"hears":   {"(-@all +subscribe +unsubscribe &billing-remote:answer:*)"},
	}
	clients := map[string]*holdfast.Client{}
	for user, selectors := range grants {
		as := grant(t, srv, user, "billing", tenants(t)...)
		harness.Must(t, srv, append([]any{"ACL", "SETUSER", user}, selectors...)...)
		clients[user] = harness.Locker(t, srv.Addr(), &holdfast.Config{Prefix: "billing", Remote: true}, as)
	}
	harness.Lock(t, clients["answers"].Mutex("o"))
	stacksOf(t, clients["asks"], "o", "")
	for _, user := range []string{"answers", "hears"} {
		if _, err := clients[user].Stacks(t.Context(), "o"); !errors.As(err, &denied) ||
			denied.Kind != holdfast.StoreDenied || !strings.Contains(err.Error(), "billing-remote:") {
			t.Errorf("%s: %v", user, err)
		}
	}
}

// A syncBuffer is a buffer that several goroutines use.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// Answers that cannot be read, or are too large, are told as such; what is none is dropped. So is a
// question that is none.
func TestStacksRefuseBadAnswers(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	asker := harness.Locker(t, srv.Addr(), nil)
	lease := harness.Lock(t, asker.Mutex("n"))
	rdb := harness.Client(t, srv.Addr())
	questions := rdb.Subscribe(t.Context(), "holdfast-remote:ask")
	t.Cleanup(func() { _ = questions.Close() })
	if _, err := questions.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	head := fmt.Sprintf("1%d\n", lease.Token())
	answer := func(text string) (lockinfo.Stack, error) {
		go func() {
			q, err := questions.ReceiveMessage(context.WithoutCancel(t.Context()))
			if err == nil && len(q.Payload) == 1+22+1 && q.Payload[0] == '1' && q.Payload[23:] == "n" {
				rdb.Publish(context.WithoutCancel(t.Context()), "holdfast-remote:answer:"+q.Payload[1:23], text)
			}
		}()
		all, err := asker.Stacks(t.Context(), "n")
		if err != nil || len(all) != 1 || len(all[0].Frames) > 0 && all[0].Why != "" {
			t.Fatalf("%+v, %v", all, err)
		}
		return all[0], err
	}
	frame := `{"function":"f","file":"g.go","line":1}`
	good := head + `{"leases":1,"age_ms":5,"frames":[` + frame + `]}`
	for text, why := range map[string]string{
		good:                              "",
		head + strings.Repeat("x", 1<<20): "has 1048",
		head + "{":                        "cannot be read",
		head + `{"age_ms":-1,"frames":[` + frame + `]}`:                     "cannot be",
		head + `{"age_ms":1,"frames":[]}`:                                   "cannot be",
		head + `{"frames":[` + strings.Repeat(frame+",", 40) + frame + `]}`: "cannot be",
		"2" + good[1:]:             "no process answered",
		"11\n" + good[len(head):]:  "no process answered",
		"":                         "no process answered",
		strings.Repeat("x", 1<<20): "no process answered",
	} {
		stack, err := answer(text)
		if err != nil || (why == "") != (len(stack.Frames) == 1) || !strings.Contains(stack.Why, why) {
			t.Errorf("%.60q: %+v, %v", text, stack, err)
		}
	}

	// A holder answers what is a question after all that is none.
	holder := harness.Locker(t, srv.Addr(), &holdfast.Config{Remote: true})
	harness.Lock(t, holder.Mutex("m"))
	stacksOf(t, asker, "m", "")
	answered := srv.CommandStats()["publish"]
	bad := []string{"", "1", "1short", "2" + strings.Repeat("i", 22) + "m", "1" + strings.Repeat("i", 22),
		"1" + strings.Repeat("i", 22) + strings.Repeat("n", 1025), strings.Repeat("x", 1<<20)}
	for _, text := range bad {
		harness.Must(t, srv, "PUBLISH", "holdfast-remote:ask", text)
	}
	stacksOf(t, asker, "m", "")
	if n := srv.CommandStats()["publish"] - answered - len(bad); n != 2 {
		t.Errorf("%d messages for one question", n)
	}
}
