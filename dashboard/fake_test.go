package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// TestMain fails when a goroutine is left behind (trap 33).
func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// A fakeClient is a client of a server that the test changes.
type fakeClient struct {
	mu       sync.Mutex
	names    map[string]lockinfo.Info
	err      error         // of List, after the names
	ready    error         // of Ready
	takes    time.Duration // of a List
	polls    []time.Time   // the beginnings of Lists
	broken   []string
	evicted  []string
	asked    []string // for stacks
	past     []lockinfo.Entry
	found    []lockinfo.Deadlock
	searches int
	search   chan struct{} // a search for deadlocks waits for its end
}

func newFake(infos ...lockinfo.Info) *fakeClient {
	f := &fakeClient{names: map[string]lockinfo.Info{}}
	f.setNames(infos...)
	return f
}

func (f *fakeClient) setNames(infos ...lockinfo.Info) {
	f.change(func() {
		for _, info := range infos {
			f.names[info.Name] = info
		}
	})
}

func (f *fakeClient) change(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fakeClient) List(ctx context.Context, _ holdfast.ListOptions) iter.Seq2[lockinfo.Info, error] {
	f.mu.Lock()
	f.polls = append(f.polls, time.Now())
	names, err, takes := maps.Clone(f.names), f.err, f.takes
	f.mu.Unlock()
	return func(yield func(lockinfo.Info, error) bool) {
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			yield(lockinfo.Info{}, ctx.Err())
			return
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			for range 2 { // SCAN may find a key twice
				if !yield(names[name], nil) {
					return
				}
			}
		}
		if err != nil {
			yield(lockinfo.Info{}, err)
		}
	}
}

func (f *fakeClient) Ready(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ready
}

func (f *fakeClient) Quorum(context.Context) ([]lockinfo.Master, error) {
	return nil, &holdfast.ArgumentError{}
}

func (f *fakeClient) Deadlocks(context.Context) ([]lockinfo.Deadlock, error) {
	f.mu.Lock()
	f.searches++
	wait, found := f.search, f.found
	f.mu.Unlock()
	if wait != nil {
		<-wait
	}
	return found, nil
}

func (f *fakeClient) Stacks(_ context.Context, name string) ([]lockinfo.Stack, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, name)
	frame := lockinfo.Frame{Function: "<b>.f", File: "f.go", Line: 7}
	return []lockinfo.Stack{{Hold: f.names[name].Holds[0], Frames: []lockinfo.Frame{frame}}}, f.err
}

func (f *fakeClient) Break(_ context.Context, name string, token int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.names[name].Holds {
		if h.Token == token {
			f.broken = append(f.broken, name)
			return nil
		}
	}
	return holdfast.ErrNotHeld
}

func (f *fakeClient) Evict(_ context.Context, name, waiter string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.names[name].Queue {
		if w.ID == waiter {
			f.evicted = append(f.evicted, name)
			return nil
		}
	}
	return holdfast.ErrNotWaiting
}

func (f *fakeClient) History(_ context.Context, name string, _ time.Time) iter.Seq2[lockinfo.Entry, error] {
	return func(yield func(lockinfo.Entry, error) bool) {
		for _, e := range f.past {
			if e.Name == name && !yield(e, nil) {
				return
			}
		}
		if f.err != nil {
			yield(lockinfo.Entry{}, f.err)
		}
	}
}

func (f *fakeClient) countPolls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.polls)
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newHeld(name, label string, token int64) lockinfo.Info {
	return lockinfo.Info{
		Name: name, Kind: "mutex", At: epoch, Holders: 1,
		Holds: []lockinfo.Hold{{
			State: lockinfo.StateHeld, Label: label, Host: "host-" + label, PID: 7, Mode: lockinfo.ModeExclusive,
			Token: token, LastToken: token,
			Since: epoch.Add(-time.Minute), Remaining: 20 * time.Second, TTL: 30 * time.Second,
		}},
	}
}

// A viewer reads a stream.
type viewer struct {
	http.ResponseWriter
	events chan event
	done   chan struct{}
	cancel context.CancelFunc
	unread bytes.Buffer
}

type event struct {
	name string
	data []byte
}

func (v *viewer) Flush() {}

func (v *viewer) Write(text []byte) (int, error) {
	v.unread.Write(text)
	for {
		whole, rest, found := strings.Cut(v.unread.String(), "\n\n")
		if !found {
			return len(text), nil
		}
		v.unread.Reset()
		v.unread.WriteString(rest)
		name, data, _ := strings.Cut(strings.TrimPrefix(whole, "event: "), "\ndata: ")
		v.events <- event{name, []byte(data)}
	}
}

// openStream opens a stream, until the end of the test at most.
func openStream(t *testing.T, h http.Handler) *viewer {
	ctx, cancel := context.WithCancel(context.Background())
	v := &viewer{ResponseWriter: httptest.NewRecorder(), events: make(chan event, 1000), done: make(chan struct{}),
		cancel: cancel}
	t.Cleanup(v.close)
	go func() {
		defer close(v.done)
		h.ServeHTTP(v, httptest.NewRequestWithContext(ctx, "GET", "/events", nil))
	}()
	return v
}

// close leaves, and waits until the stream has ended.
func (v *viewer) close() {
	v.cancel()
	<-v.done
}

// A pageUpdate is an update as a page reads it.
type pageUpdate struct {
	status
	Whole   bool              `json:"whole"`
	Part    bool              `json:"part"`
	Changed []row             `json:"changed"`
	Gone    []uint64          `json:"gone"`
	Changes []lockinfo.Change `json:"changes"`
}

func (v *viewer) next(t *testing.T) pageUpdate {
	t.Helper()
	for e := range v.events {
		if e.name != "update" {
			continue
		}
		var u pageUpdate
		if err := json.Unmarshal(e.data, &u); err != nil {
			t.Fatal(err)
		}
		return u
	}
	return pageUpdate{}
}

// readHello returns what the stream says first.
func (v *viewer) readHello(t *testing.T) (secret string, canBreak bool) {
	t.Helper()
	var hello struct {
		Secret   string `json:"secret"`
		CanBreak bool   `json:"can_break"`
	}
	if err := json.Unmarshal((<-v.events).data, &hello); err != nil {
		t.Fatal(err)
	}
	return hello.Secret, hello.CanBreak
}

func get(h http.Handler, path string) *httptest.ResponseRecorder {
	return serve(h, httptest.NewRequest("GET", path, nil))
}

// post makes a request to change something.
func post(h http.Handler, path, body string, headers ...map[string]string) *httptest.ResponseRecorder {
	return serve(h, httptest.NewRequest("POST", path, strings.NewReader(body)), headers...)
}

func serve(h http.Handler, r *http.Request, headers ...map[string]string) *httptest.ResponseRecorder {
	for _, header := range headers {
		for key, value := range header {
			r.Header.Set(key, value)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}
