package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A verdict says what was seen. It is computed from reports.
type verdict struct {
	ok   bool // of a naive lock: the bug was seen; of holdfast: the fix held
	text string
}

func verdictf(ok bool, format string, args ...any) verdict {
	return verdict{ok, fmt.Sprintf(text(format), args...)}
}

// tenures returns the tenures of some processes, in the order of their entries.
func tenures(processes ...*process) (list []tenure) {
	for _, p := range processes {
		list = append(list, p.entries()...)
	}
	slices.SortStableFunc(list, func(a, b tenure) int { return a.From.Compare(b.From) })
	return list
}

// together is the verdict on a naive lock that lets two processes in at once. It begins with how
// that came about, and tells of the longest time during which two were inside.
func together(how string, list []tenure) verdict {
	if v := overlap(list); v.ok {
		return verdictf(true, "%s: %s", how, v.text)
	}
	return verdictf(false, "no two processes were inside together")
}

// overlap tells of the longest time during which two processes were inside, if two were.
func overlap(list []tenure) (longest verdict) {
	most := time.Duration(0)
	for i, a := range list {
		for _, b := range list[i+1:] { // which entered later
			to := a.To
			if b.To.Before(to) {
				to = b.To
			}
			if d := to.Sub(b.From); a.Name != b.Name && d > most {
				most = d
				longest = verdictf(true, "%s and %s were inside together for %s", a.Name, b.Name, formatTime(d))
			}
		}
	}
	return longest
}

// apart is the verdict on a lock that lets these processes in, one after the other. It begins with
// what became of the bug.
func apart(answer string, list []tenure, want ...string) verdict {
	var got []string
	for _, t := range list {
		got = append(got, t.Name)
	}
	if v := overlap(list); v.ok {
		return verdict{false, v.text}
	}
	if !slices.Equal(got, want) {
		return verdictf(false, "inside were %s, and not %s", names(got), names(want))
	}
	if len(list) == 1 {
		return verdictf(true, "%s: %s alone was inside", answer, got[0])
	}
	last := list[len(list)-1]
	before := list[len(list)-2]
	return verdictf(true, "%s: never two inside; %s got in %s after %s stopped working", answer, last.Name,
		formatTime(last.From.Sub(before.To)), before.Name)
}

func names(list []string) string {
	if len(list) == 0 {
		return text("none")
	}
	return strings.Join(list, ", ")
}
