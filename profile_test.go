package holdfast_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

// culprit holds the lock for long, and so its other callers wait in it.
func culprit(t *testing.T, client *holdfast.Client) {
	must(t, lockFor(t.Context(), client, time.Minute))
}

func innocent(t *testing.T, client *holdfast.Client) {
	lease, err := client.Mutex("other").Lock(t.Context())
	must(t, err)
	must(t, lease.Release(t.Context()))
}

// go tool pprof reads the profile, and its top entry is the planted culprit.
func TestProfileNamesCulprit(t *testing.T) {
	var profile bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		server := memory.New(protocol.Features{Queue: true, Tokens: true})
		client, err := holdfast.NewOn(server.Connect("p"), &holdfast.Config{Profile: true, Class: func(string) string { return "order" }})
		must(t, err)
		var work sync.WaitGroup
		for range 3 {
			work.Go(func() { culprit(t, client) })
			work.Go(func() { innocent(t, client) })
		}
		work.Wait()
		must(t, client.Close())
		recorder := httptest.NewRecorder()
		client.Profile().ServeHTTP(recorder, nil)
		profile = *recorder.Body
	})
	file := filepath.Join(t.TempDir(), "holdfast.pb.gz")
	must(t, os.WriteFile(file, profile.Bytes(), 0o600))
	for flags, want := range map[string]string{
		"-top -cum":                           "lockFor",
		"-peek .culprit$ -sample_index=delay": "culprit",
		"-tags":                               "order",
		"-raw -sample_index=waits":            "delay/nanoseconds",
	} {
		out, err := exec.Command("go", append(append([]string{"tool", "pprof"}, strings.Fields(flags)...), file)...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("go tool pprof %s: %v\n%s", flags, err, out)
		}
	}
	out, err := exec.Command("go", "tool", "pprof", "-top", "-focus=culprit", "-unit=s", file).Output()
	if lines := strings.Split(string(out), "\n"); err != nil || !strings.Contains(string(out), "180s") || strings.Contains(string(out), "holdfast.(*Mutex)") {
		t.Errorf("%v\n%s", err, strings.Join(lines, "\n"))
	}
}

// alone takes a lock that nobody has, and inVain waits for one until it gives up.
func alone(t *testing.T, client *holdfast.Client) *holdfast.Lease {
	lease, err := client.Mutex("order").Lock(t.Context())
	must(t, err)
	return lease
}

func inVain(t *testing.T, client *holdfast.Client) {
	if _, err := client.Mutex("order", holdfast.WithWait(time.Second)).Lock(t.Context()); !errors.Is(err, holdfast.ErrWaitOver) {
		t.Errorf("the wait ended with %v", err)
	}
}

func TestProfileHasWaitsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New(protocol.Features{Queue: true, Tokens: true})
		client, err := holdfast.NewOn(server.Connect("p"), &holdfast.Config{Profile: true})
		must(t, err)
		lease := alone(t, client)
		inVain(t, client)
		must(t, lease.Release(t.Context()))
		must(t, client.Close())
		var packed bytes.Buffer
		_, err = client.Profile().WriteTo(&packed)
		must(t, err)
		unpacked, err := gzip.NewReader(&packed)
		must(t, err)
		text, err := io.ReadAll(unpacked)
		must(t, err)
		if bytes.Contains(text, []byte("_test.alone")) || !bytes.Contains(text, []byte("_test.inVain")) {
			t.Errorf("the profile has the caller that did not wait, or not the one that gave up:\n%q", text)
		}
	})
}

func TestProfileIsEmpty(t *testing.T) {
	client, err := holdfast.NewOn(memory.New(protocol.Features{Queue: true, Tokens: true}).Connect("p"), nil)
	must(t, err)
	var none *holdfast.Client
	for _, p := range []*holdfast.Profile{client.Profile(), none.Profile(), nil, {}} {
		var out bytes.Buffer
		if n, err := p.WriteTo(&out); err != nil || n != int64(out.Len()) || n == 0 {
			t.Errorf("%d bytes of %d: %v", n, out.Len(), err)
		}
	}
	must(t, client.Close())
}

// A client with Config.Profile serves where its callers wait.
func ExampleClient_Profile() {
	client := connect() // holdfast.New(redisstore.New(rdb), &holdfast.Config{Profile: true})
	defer client.Close()

	http.Handle("/debug/holdfast", client.Profile())
	// go tool pprof http://localhost:8080/debug/holdfast
}
