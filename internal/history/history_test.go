package history_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/history"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/lockinfo"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// A fakeStore answers every request alike.
type fakeStore struct {
	wire.Store
	answer func(ctx context.Context, r wire.Request) wire.Reply

	mu    sync.Mutex
	sizes []int // of the flushes
}

// flushes returns how many requests each flush had.
func (f *fakeStore) flushes() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.sizes)
}

func (f *fakeStore) Do(ctx context.Context, requests []wire.Request) []wire.Reply {
	f.mu.Lock()
	f.sizes = append(f.sizes, len(requests))
	f.mu.Unlock()
	replies := make([]wire.Reply, len(requests))
	for i, r := range requests {
		replies[i] = f.answer(ctx, r)
	}
	return replies
}

func silent(ctx context.Context, _ wire.Request) wire.Reply {
	<-ctx.Done()
	return wire.Reply{Err: ctx.Err()}
}

func start(f *fakeStore) (*history.Recorder, *bytes.Buffer) {
	var log bytes.Buffer
	return history.New([]wire.Store{f}, history.Config{Prefix: "p", Process: "host/7/x", Limit: 100,
		Logger: slog.New(slog.NewTextHandler(&log, nil))}), &log
}

func entry(name string) lockinfo.Entry {
	return lockinfo.Entry{At: time.Now(), Kind: lockinfo.EntryGranted, Name: name, Token: 1}
}

// Entries that come within 100 ms, or 1,024 of them, travel in batches of 64. Without entries
// nothing is sent.
func TestRecorderGathers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeStore{answer: func(context.Context, wire.Request) wire.Reply { return wire.Reply{Value: "1-1"} }}
		r, log := start(f)
		for range 1024 {
			r.Add("c", entry("a"))
		}
		synctest.Wait()
		if got := f.flushes(); len(got) != 16 || got[0] != 64 {
			t.Errorf("flushes of %v at once", got)
		}
		r.Add("c", entry("a"))
		synctest.Wait()
		if got := f.flushes(); len(got) != 16 {
			t.Errorf("flushes of %v at once", got)
		}
		<-time.After(time.Second)
		synctest.Wait()
		r.Add("c", entry("a"))
		began := time.Now()
		r.Close(began.Add(time.Minute))
		if got := f.flushes(); !slices.Equal(got[16:], []int{1, 1}) || time.Since(began) > 0 || log.Len() > 0 {
			t.Errorf("flushes of %v, closed in %v, log %s", got, time.Since(began), log)
		}
	})
}

// A lease that ends before its grant is written costs one entry, from which both are read.
func TestRecorderJoinsGrantAndEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var page []any
		f := &fakeStore{answer: func(_ context.Context, r wire.Request) wire.Reply {
			if r.Args[0] == "XADD" {
				page = append([]any{[]any{strconv.FormatInt(time.Now().UnixMilli(), 10) + "-0", r.Args[6:]}}, page...)
			}
			return wire.Reply{Value: page}
		}}
		r, _ := start(f)
		add := func(kind lockinfo.EntryKind, token int64, at time.Time, held time.Duration) {
			e := lockinfo.Entry{Kind: kind, Name: "a", Token: token, At: at, Held: held}
			if kind == lockinfo.EntryGranted {
				e.Waited, e.Holder = time.Minute, "before"
			} else {
				e.Reason, e.By = "broken", "by"
			}
			r.Add("c", e)
		}
		began := time.Now()
		add(lockinfo.EntryGranted, 1, began, 0)
		<-time.After(5 * time.Millisecond)
		add(lockinfo.EntryGranted, 2, time.Now(), 0)
		add(lockinfo.EntryLost, 1, time.Now(), 5*time.Millisecond)
		add(lockinfo.EntryReleased, 2, time.Now(), time.Second) // another lease of that token
		<-time.After(time.Second)
		add(lockinfo.EntryReleased, 2, time.Now(), time.Since(began))
		r.Close(time.Now().Add(time.Minute))
		if got := f.flushes(); !slices.Equal(got, []int{3, 1}) {
			t.Errorf("flushes of %v", got)
		}
		entries, _, err := r.Read("c", "a", time.Time{}).Next(t.Context())
		var got string
		for _, e := range entries {
			got += fmt.Sprint(e.Kind, e.Token, e.At.Sub(began), e.Waited, e.Held, e.Holder, e.Reason, e.By, "; ")
		}
		const want = "released2 1.005s 0s 1.005sbrokenby; " +
			"released2 5ms 0s 1sbrokenby; granted2 5ms 1m0s 0sbefore; lost1 5ms 0s 5msbrokenby; granted1 0s 1m0s 0sbefore; "
		if err != nil || got != want {
			t.Errorf("got %s, %v\nwant %s", got, err, want)
		}
	})
}

// A stream that the server does not take costs its entries, and one line that names it. The stream
// of another class goes on.
func TestRecorderDropsAndSaysSoOnce(t *testing.T) {
	for _, refusal := range []string{"WRONGTYPE not a stream", "OOM full", "NOPERM xadd", "READONLY a replica", ""} {
		synctest.Test(t, func(t *testing.T) {
			works := false
			f := &fakeStore{}
			f.answer = func(ctx context.Context, r wire.Request) wire.Reply {
				switch {
				case works || strings.Contains(r.Key, "good"):
					return wire.Reply{Value: "1-1"}
				case refusal == "":
					return silent(ctx, r)
				}
				return wire.Reply{Refused: refusal}
			}
			r, log := start(f)
			for range 3 {
				r.Add("bad", entry("a"))
				r.Add("good", entry("a"))
				<-time.After(5 * time.Second)
			}
			synctest.Wait()
			warned := strings.Count(log.String(), "level=WARN")
			if warned != 1 || !strings.Contains(log.String(), "p:{%history:bad}") {
				t.Errorf("%s: log %s", refusal, log)
			}
			works = true
			r.Add("bad", entry("a"))
			<-time.After(time.Second)
			synctest.Wait()
			if !strings.Contains(log.String(), "written again") || !strings.Contains(log.String(), "dropped=3") {
				t.Errorf("%s: log %s", refusal, log)
			}
			r.Close(time.Now())
		})
	}
}

// A server that does not answer holds up neither who adds an entry, nor Close past its end.
func TestRecorderOfSilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeStore{answer: silent}
		r, log := start(f)
		began := time.Now()
		for range 10_000 {
			r.Add("c", entry("a"))
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("it took %v", took)
		}
		r.Close(began.Add(300 * time.Millisecond))
		if took := time.Since(began); took > 300*time.Millisecond {
			t.Errorf("Close took %v", took)
		}
		r.Add("c", entry("a"))
		<-time.After(5 * time.Second)
		synctest.Wait()
		if len(f.flushes()) != 1 || !strings.Contains(log.String(), "too slow") {
			t.Errorf("%d flushes, log %s", len(f.flushes()), log)
		}
	})
}

// What others put into the stream is skipped, and what was cut off has zeros.
func TestReadingOfAnyStream(t *testing.T) {
	page := []any{
		[]any{"9-0", []any{"event", "released", "name", "a", "token", "-3", "held", "9223372036854775807", "pid"}},
		[]any{"8-0", []any{"event", "granted", "name", "other"}},
		[]any{"7-0", []any{"f", "v"}}, []any{"x"}, "y", nil, []any{"6-0", "z"},
		[]any{"5-0", []any{"name", "a", "event", "new in a later version", "process", "h"}},
		[]any{"", []any{"name", "a", "event", "granted", "process", "h/x/y", "ago", "99999999999999999999"}},
	}
	f := &fakeStore{answer: func(context.Context, wire.Request) wire.Reply { return wire.Reply{Value: page} }}
	r, _ := start(f)
	got, over, err := r.Read("c", "a", time.Time{}).Next(t.Context())
	if err != nil || !over || len(got) != 3 || got[0].Kind != lockinfo.EntryReleased || got[0].Token != 0 ||
		got[0].Held <= 0 || got[1].Host != "h" || got[2].PID != 0 {
		t.Errorf("got %+v, %v, %v", got, over, err)
	}
	f.answer = func(context.Context, wire.Request) wire.Reply { return wire.Reply{Value: "OK"} }
	if _, _, err := r.Read("c", "a", time.Time{}).Next(t.Context()); err == nil {
		t.Error("no error of an answer that is none of ours")
	}
}

// Several pages come in one order of time, whatever the order of writing, and end at since.
func TestReadingSortsAcrossPages(t *testing.T) {
	at := func(ms int64) time.Time { return time.UnixMilli(ms) }
	f := &fakeStore{answer: func(_ context.Context, r wire.Request) wire.Reply {
		next := int64(3000)
		if before, ok := strings.CutPrefix(r.Args[2].(string), "("); ok {
			last, _, _ := strings.Cut(before, "-")
			next, _ = strconv.ParseInt(last, 10, 64)
			next--
		}
		var page []any
		for range 500 {
			ago := []string{"0", "900000"}[next%2] // microseconds
			page = append(page, []any{strconv.FormatInt(next, 10) + "-0",
				[]any{"event", "granted", "name", "a", "ago", ago}})
			next--
		}
		return wire.Reply{Value: page}
	}}
	r, _ := start(f)
	reading, last, count := r.Read("c", "a", at(1500)), at(4000), 0
	for over := false; !over; {
		var entries []lockinfo.Entry
		var err error
		if entries, over, err = reading.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.At.After(last) || e.At.Before(at(1500)) {
				t.Fatalf("%v after %v", e.At, last)
			}
			last = e.At
			count++
		}
	}
	if want := 751 + 300; count != want || len(f.flushes()) > 4 {
		t.Errorf("%d entries in %d pages, want %d", count, len(f.flushes()), want)
	}
}
