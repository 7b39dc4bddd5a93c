package main

import (
	"testing"
	"time"
)

// inside is a tenure in milliseconds.
func inside(name string, from, to int) tenure {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	return tenure{Name: name, From: at(from), To: at(to)}
}

func TestVerdictOfTenures(t *testing.T) {
	for name, c := range map[string]struct {
		list            []tenure
		together, apart verdict
	}{
		"one after the other": {
			[]tenure{inside("A", 0, 10), inside("B", 12, 20)},
			verdict{false, "no two processes were inside together"},
			verdict{true, "the answer: never two inside; B got in 2 ms after A stopped working"},
		},
		"two at once": {
			[]tenure{inside("A", 0, 15), inside("B", 12, 20)},
			verdict{true, "the bug: A and B were inside together for 3 ms"},
			verdict{false, "A and B were inside together for 3 ms"},
		},
		"the longest counts": {
			[]tenure{inside("A", 0, 15), inside("B", 12, 40), inside("C", 20, 40)},
			verdict{true, "the bug: B and C were inside together for 20 ms"},
			verdict{false, "B and C were inside together for 20 ms"},
		},
		"a process beside itself": {
			[]tenure{inside("A", 0, 15), inside("A", 12, 20)},
			verdict{false, "no two processes were inside together"},
			verdict{false, "inside were A, A, and not A, B"},
		},
		"nobody": {
			nil,
			verdict{false, "no two processes were inside together"},
			verdict{false, "inside were none, and not A, B"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := together("the bug", c.list); got != c.together {
				t.Errorf("together: got %+v, want %+v", got, c.together)
			}
			if got := apart("the answer", c.list, "A", "B"); got != c.apart {
				t.Errorf("apart: got %+v, want %+v", got, c.apart)
			}
		})
	}
}

func TestBarOfTenures(t *testing.T) {
	list := []tenure{inside("A", 0, 20), inside("B", 21, 60), inside("A", 58, 58)}
	from, to := time.UnixMilli(0), time.UnixMilli(60)
	for process, want := range map[string]string{
		"A": "====================                                      : ",
		"B": "                     =======================================",
	} {
		if got := bar(list, process, from, to); got != want {
			t.Errorf("%s: got %q, want %q", process, got, want)
		}
	}
}
