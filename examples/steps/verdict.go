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

// together is the verdict on a naive lock that lets two processes in at once. It tells of the
// longest time during which two were inside.
func together(list []tenure) verdict {
	longest, text := time.Duration(0), "no two processes were inside together"
	for i, a := range list {
		for _, b := range list[i+1:] { // which entered later
			to := a.To
			if b.To.Before(to) {
				to = b.To
			}
			if d := to.Sub(b.From); a.Name != b.Name && d > longest {
				longest, text = d, fmt.Sprintf("%s and %s were inside together for %s", a.Name, b.Name, formatTime(d))
			}
		}
	}
	return verdict{longest > 0, text}
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
