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
	return verdict{ok, fmt.Sprintf(format, args...)}
}

// tenures returns the tenures of some processes, in the order of their entries.
func tenures(processes ...*process) (list []tenure) {
	for _, p := range processes {
		list = append(list, p.entries()...)
	}
	slices.SortStableFunc(list, func(a, b tenure) int { return a.From.Compare(b.From) })
	return list
}

// An overlap is the time during which two processes were inside together.
type overlap struct {
	a, b string
	time time.Duration
}

// longest returns the longest overlap of two different processes, and false if there is none.
func longest(list []tenure) (most overlap, found bool) {
	for i, a := range list {
		for _, b := range list[i+1:] {
			from, to := a.From, a.To
			if b.From.After(from) {
				from = b.From
			}
			if b.To.Before(to) {
				to = b.To
			}
			if d := to.Sub(from); a.Name != b.Name && d > most.time {
				most, found = overlap{a.Name, b.Name, d}, true
			}
		}
	}
	return most, found
}

// together is the verdict on a naive lock that lets two processes in at once.
func together(list []tenure) verdict {
	o, found := longest(list)
	if !found {
		return verdictf(false, "no two processes were inside together")
	}
	return verdictf(true, "%s and %s were inside together for %s", o.a, o.b, formatTime(o.time))
}

// apart is the verdict on a lock that lets these processes in, one after the other.
func apart(list []tenure, want ...string) verdict {
	var got []string
	for _, t := range list {
		got = append(got, t.Name)
	}
	if v := together(list); v.ok {
		return verdict{false, v.text}
	}
	if !slices.Equal(got, want) {
		return verdictf(false, "inside were %s, and not %s", names(got), names(want))
	}
	for i := 1; i < len(list); i++ {
		if list[i].Token != 0 && list[i].Token <= list[i-1].Token {
			return verdictf(false, "token %d came after token %d", list[i].Token, list[i-1].Token)
		}
	}
	if len(list) == 1 {
		return verdictf(true, "%s alone was inside", got[0])
	}
	last := list[len(list)-1]
	before := list[len(list)-2]
	return verdictf(true, "never two inside; %s got in %s after %s stopped working", last.Name,
		formatTime(last.From.Sub(before.To)), before.Name)
}

func names(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}
