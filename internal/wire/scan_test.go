package wire

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/store"
)

// paged answers SCAN with a key a page, three pages a node.
func paged(node string, commands []store.Command) []store.Reply {
	if commands[0][0] != "SCAN" {
		return []store.Reply{{Value: "OK"}}
	}
	cursor, next := commands[0][1].(string), map[string]string{"0": "17", "17": "4", "4": "0"}
	return []store.Reply{{Value: []any{next[commands[0][1].(string)], []any{node + " " + cursor}}}}
}

func scanAll(t *testing.T, f *fakeStore) (keys []string, err error) {
	for key, err := range Scan(t.Context(), Route(f), "p:*", time.Second) {
		if err != nil {
			return keys, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// All pages of all masters are told, and each page is asked for with the cursor of the one before.
func TestScanEveryMaster(t *testing.T) {
	for name, f := range map[string]*fakeStore{"cluster": newFake("a:1", "b:1"), "single": newFake()} {
		f.answer = paged
		keys, err := scanAll(t, f)
		slices.Sort(keys)
		want := []string{" 0", " 17", " 4"}
		if f.cluster {
			want = []string{"a:1 0", "a:1 17", "a:1 4", "b:1 0", "b:1 17", "b:1 4"}
		}
		if err != nil || !slices.Equal(keys, want) {
			t.Errorf("%s: %q, %v", name, keys, err)
		}
		if sent := strings.Join(f.sent, "\n"); !strings.Contains(sent,
			fmt.Sprintf("SCAN 17 MATCH p:* COUNT %d", scanCount)) {
			t.Errorf("%s: sent %s", name, sent)
		}
	}
}

// The end of ctx ends a scan at once, whatever the store waits for: to learn what is behind it, or
// the answer to one of the scans.
func TestScanEndsWithContext(t *testing.T) {
	for _, silent := range []string{"INFO", "SCAN"} {
		f, asked, released := newFake("a:1"), make(chan struct{}), make(chan struct{})
		f.answer = func(node string, commands []store.Command) []store.Reply {
			if commands[0][0] == silent {
				close(asked)
				<-released
			}
			return paged(node, commands)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			for _, err := range Scan(ctx, Route(f), "*", time.Hour) {
				if err != nil {
					ended <- err
				}
			}
			close(ended)
		}()
		<-asked
		cancel()
		var failure *protocol.Failure
		select {
		case err := <-ended:
			if !errors.Is(err, context.Canceled) || !errors.As(err, &failure) || failure.Unknown {
				t.Errorf("%s: got %v", silent, err)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s: it goes on", silent)
		}
		close(released)
		for range ended { // until it has ended
		}
	}
}

// An error is the last that is told. One of a missing permission says which, and what works.
func TestScanFails(t *testing.T) {
	for refused, reason := range map[string]protocol.Reason{
		"NOPERM this user has no permissions to run the 'scan' command": protocol.Denied,
		"LOADING Redis is loading":                                      protocol.Loading, "": protocol.Other} {
		f := newFake("a:1", "b:1")
		f.answer = func(_ string, commands []store.Command) []store.Reply {
			if commands[0][0] != "SCAN" {
				return []store.Reply{{Value: "OK"}}
			}
			return []store.Reply{{Refused: refused, Value: "something"}}
		}
		keys, err := scanAll(t, f)
		var failure *protocol.Failure
		if len(keys) > 0 || !errors.As(err, &failure) || failure.Reason != reason || failure.Unknown {
			t.Errorf("%q: %q, %v", refused, keys, err)
		}
		if reason == protocol.Denied && (!strings.Contains(err.Error(), "+scan") ||
			!strings.Contains(err.Error(), "Inspect")) {
			t.Errorf("got %v", err)
		}
	}
}
