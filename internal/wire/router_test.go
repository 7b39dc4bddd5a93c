package wire

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/store"
)

// Key {b} lies in slot 3300, which node a:1 serves of two; key {a} in slot 15495, at b:1.
const atA, atB = "{b}", "{a}"

func incr(keys ...string) (requests []Request) {
	for _, key := range keys {
		requests = append(requests, Request{Key: key, Args: []any{"INCR", key}})
	}
	return requests
}

// lines makes an answer of error lines by node: the first Do there gets the first line, and so
// on. When there are none left, the answer is 1.
func lines(byNode map[string][]string) func(string, []store.Command) []store.Reply {
	return func(node string, commands []store.Command) []store.Reply {
		replies := make([]store.Reply, len(commands))
		line := ""
		if left := byNode[node]; len(left) > 0 {
			line, byNode[node] = left[0], left[1:]
		}
		for i, c := range commands {
			if replies[i].Value = any(int64(1)); c[0] != "ASKING" && line != "" {
				replies[i] = store.Reply{Refused: line}
			}
		}
		return replies
	}
}

func TestRouterClusterRedirected(t *testing.T) {
	for name, test := range map[string]struct {
		says map[string][]string
		sent []string
		want Reply
	}{
		"not": {nil, []string{"a:1: INCR {b}"}, Reply{Value: int64(1), Node: "a:1"}},
		"moved": {map[string][]string{"a:1": {"MOVED 3300 b:1"}}, []string{"a:1: INCR {b}", "b:1: INCR {b}"},
			Reply{Value: int64(1), Node: "b:1"}},
		"asked": {map[string][]string{"a:1": {"ASK 3300 b:1"}}, []string{"a:1: INCR {b}", "b:1: ASKING; INCR {b}"},
			Reply{Value: int64(1), Node: "b:1"}},
		"to a node that does not know its address": {map[string][]string{"a:1": {"MOVED 3300 :1"}},
			[]string{"a:1: INCR {b}", "a:1: INCR {b}"}, Reply{Value: int64(1), Node: "a:1"}},
		"in a circle": {map[string][]string{"a:1": {"MOVED 3300 b:1", "MOVED 3300 b:1"},
			"b:1": {"MOVED 3300 a:1", "MOVED 3300 a:1"}},
			[]string{"a:1: INCR {b}", "b:1: INCR {b}", "a:1: INCR {b}", "b:1: INCR {b}"},
			Reply{Refused: "TRYAGAIN MOVED 3300 a:1", Node: "b:1"}},
		"to a node that the client has not met": {map[string][]string{"a:1": {"MOVED 3300 c:1"}},
			[]string{"a:1: INCR {b}", "c:1: INCR {b}"}, Reply{Value: int64(1), Node: "c:1"}},
		"to a node that the client cannot meet": {map[string][]string{"a:1": {"MOVED 3300 d:1"}},
			[]string{"a:1: INCR {b}"}, Reply{Refused: "TRYAGAIN MOVED 3300 d:1", Node: "a:1"}},
		"refused otherwise": {map[string][]string{"a:1": {"TRYAGAIN later"}}, []string{"a:1: INCR {b}"},
			Reply{Refused: "TRYAGAIN later", Node: "a:1"}},
	} {
		runBubble(t, name, func(t *testing.T) {
			f := newFake("a:1", "b:1")
			f.unmet, f.answer = []string{"c:1"}, lines(test.says)
			got := Route(f).Do(t.Context(), incr(atA))[0]
			if got != test.want || !slices.Equal(f.requests(), test.sent) {
				t.Errorf("got %+v, sent %q", got, f.requests())
			}
		})
	}
}

// WAIT goes with its request, and counts at the node that carried the request out.
func TestRouterClusterRedirectedWithWait(t *testing.T) {
	for line, sent := range map[string]string{"MOVED 3300 b:1": "INCR {b}; WAIT 1 50",
		"ASK 3300 b:1": "ASKING; INCR {b}; WAIT 1 50"} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake("a:1", "b:1")
			f.answer = func(node string, commands []store.Command) []store.Reply {
				if node == "a:1" {
					return []store.Reply{{Refused: line}, {Value: int64(3)}}
				}
				replies := slices.Repeat([]store.Reply{{Value: "OK"}}, len(commands)-1)
				return append(replies, store.Reply{Value: int64(2)})
			}
			request := incr(atA)[0]
			request.Replicas, request.ReplicasTimeout = 1, 50
			got := Route(f).Do(t.Context(), []Request{request})[0]
			want := []string{"a:1: INCR {b}; WAIT 1 50", "b:1: " + sent}
			if got.Replicas != 2 || got.Node != "b:1" || !slices.Equal(f.requests(), want) {
				t.Errorf("%s: got %+v, sent %q", line, got, f.requests())
			}
		})
	}
}

// A node that may not be asked has carried nothing out. Its reply to ASKING is the answer.
func TestRouterClusterAskingRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("a:1", "b:1")
		f.answer = func(node string, commands []store.Command) []store.Reply {
			if node == "a:1" {
				return []store.Reply{{Refused: "ASK 3300 b:1"}}
			}
			return []store.Reply{{Refused: "NOPERM asking"}, {Refused: "MOVED 3300 a:1"}}
		}
		if got := Route(f).Do(t.Context(), incr(atA))[0]; got.Refused != "NOPERM asking" {
			t.Errorf("got %+v", got)
		}
	})
}

// Rule: a request is sent again only if it is unsent, and the slot is served elsewhere by now.
func TestRouterClusterWithoutAnswer(t *testing.T) {
	lost := errors.New("lost")
	for name, test := range map[string]struct {
		reply   store.Reply
		changes bool
		request Request
		sent    int
	}{
		"maybe written":              {store.Reply{Err: lost}, true, incr(atA)[0], 1},
		"unsent, the slot has moved": {store.Reply{Err: lost, Unsent: true}, true, incr(atA)[0], 2},
		"unsent, the slot is there":  {store.Reply{Err: lost, Unsent: true}, false, incr(atA)[0], 1},
		"unsent, to a node that it names": {store.Reply{Err: lost, Unsent: true}, true,
			Request{Node: "id-a:1", Args: []any{"PING"}}, 1},
	} {
		runBubble(t, name, func(t *testing.T) {
			f := newFake("a:1", "b:1")
			f.answer = func(node string, commands []store.Command) []store.Reply {
				if test.changes {
					f.change(func() { f.owners = []string{"b:1"} })
				}
				if node == "a:1" {
					return []store.Reply{test.reply}
				}
				return []store.Reply{{Value: "OK"}}
			}
			got := Route(f).Do(t.Context(), []Request{test.request})[0]
			if n := len(f.requests()); n != test.sent {
				t.Errorf("sent %q, got %+v", f.requests(), got)
			}
			if (test.sent == 2) != (got.Value == "OK") || test.sent == 1 && got.Unsent != test.reply.Unsent {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestRouterClusterOneFlushANode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("a:1", "b:1")
		requests := append(incr(atA, atB, atA+"x"), Request{Node: "nobody", Args: []any{"PING"}})
		requests[0].Replicas, requests[0].ReplicasTimeout = 1, 50
		requests[2].Replicas = 2
		f.answer = func(node string, commands []store.Command) []store.Reply {
			if _, bounded := t.Context().Deadline(); node == "a:1" && !bounded {
				return []store.Reply{{Value: "x"}, {Refused: "OOM"}, {Value: int64(3)}}
			}
			return []store.Reply{{Value: "y"}}
		}
		got := Route(f).Do(t.Context(), requests)
		sent := f.requests()
		slices.Sort(sent)
		if !slices.Equal(sent, []string{"a:1: INCR {b}; INCR {b}x; WAIT 2 50", "b:1: INCR {a}"}) {
			t.Errorf("sent %q", sent)
		}
		if got[0].Value != "x" || got[0].Replicas != 3 || got[1].Value != "y" || got[1].Replicas != 0 ||
			got[2].Replicas != 0 || !got[3].Unsent {
			t.Errorf("got %+v", got)
		}
	})
}

// If WAIT may not be asked, the request was carried out, and that is not to be trusted.
func TestRouterWaitRefused(t *testing.T) {
	f := newFake()
	f.answer = func(string, []store.Command) []store.Reply {
		return []store.Reply{{Value: "OK"}, {Refused: "NOPERM wait"}}
	}
	got := Route(f).Do(t.Context(), []Request{{Args: []any{"SET"}, Replicas: 1}})[0]
	if got.Err == nil || got.Unsent || got.Replicas != 0 || !strings.HasPrefix(got.Err.Error(), "NOPERM") {
		t.Errorf("got %+v", got)
	}
}

// A store that breaks its contract by fewer replies than commands is no reason to panic, and what
// the requests did is unknown.
func TestRouterStoreReturnsFewerReplies(t *testing.T) {
	f := newFake()
	f.answer = func(string, []store.Command) []store.Reply { return nil }
	for _, reply := range Route(f).Do(t.Context(), append(incr("n", "m"), Request{Args: []any{"SET"}, Replicas: 1})) {
		if !errors.Is(reply.Err, errMissingReply) || reply.Unsent {
			t.Errorf("got %+v", reply)
		}
	}
}

func TestRouterSingle(t *testing.T) {
	f := newFake()
	f.answer = func(string, []store.Command) []store.Reply { return []store.Reply{{Refused: "REDIRECT b:1"}} }
	r := Route(f)
	if got := r.Do(t.Context(), incr("n"))[0]; got.Refused != "REDIRECT b:1" || fmt.Sprint(f.refreshed) != "[n]" {
		t.Errorf("got %+v, refreshed %q", got, f.refreshed)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got := r.Do(ended, incr("n"))[0]; !got.Unsent || !errors.Is(got.Err, context.Canceled) ||
		len(f.requests()) != 1 {
		t.Errorf("got %+v", got)
	}
}

// A node that the client cannot meet, and a slot that no node serves, cost a question or two for
// all requests of one Do, not for each.
func TestRouterClusterAsksOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("a:1", "b:1")
		f.owners = []string{"a:1", "c:1"} // which nobody can meet
		r := Route(f)
		for i, reply := range r.Do(t.Context(), incr(slices.Repeat([]string{atA, atB}, 50)...)) {
			if atSecond := i%2 == 1; reply.Unsent != atSecond || atSecond && reply.Node != "c:1" {
				t.Errorf("request %d: %+v", i, reply)
			}
		}
		if len(f.refreshed) != 1 {
			t.Errorf("made to learn %d times", len(f.refreshed))
		}
	})
}

func TestParseSlots(t *testing.T) {
	table, err := parseSlots([]any{
		[]any{int64(8192), int64(16383), []any{"b", int64(2), "B"}},
		[]any{int64(0), int64(100), []any{"", int64(1), "A"}, []any{"c", int64(3)}},
	}, "asked:9")
	if err != nil {
		t.Fatal(err)
	}
	for slot, want := range map[int]string{0: "asked:1", 100: "asked:1", 101: "", 8191: "", 8192: "b:2", 16383: "b:2"} {
		if got := table.master(slot); got != want {
			t.Errorf("slot %d is at %q, want %q", slot, got, want)
		}
	}
	if len(table.nodes) != 3 || table.nodes[2].Role != "replica" || table.addresses["c:3"] != "c:3" {
		t.Errorf("got %+v", table)
	}
	for _, bad := range []any{nil, "x", []any{"x"}, []any{[]any{int64(0), int64(1)}}} {
		if _, err := parseSlots(bad, ""); err == nil {
			t.Errorf("%v was read", bad)
		}
	}
}

// The value that the specification itself gives.
func TestSlotOf(t *testing.T) {
	if got := SlotOf("123456789"); got != 0x31C3 {
		t.Errorf("slot %d, want %d", got, 0x31C3)
	}
}

// Every slot has a tag of its own.
func TestSlotTag(t *testing.T) {
	for slot := range Slots {
		if got := SlotOf(SlotTag(slot)); got != slot {
			t.Fatalf("the tag of slot %d lies in slot %d", slot, got)
		}
	}
}
