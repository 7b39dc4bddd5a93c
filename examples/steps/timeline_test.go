package main

import (
	"bytes"
	"testing"
	"time"
)

// Lines come in the order of their times, repeated lines once with their number, and tokens in the
// order in which they are first shown.
func TestTimeline(t *testing.T) {
	var out bytes.Buffer
	lines := newTimeline(&out)
	// not printed before finish
	at := func(ms int) time.Time { return lines.began.Add(time.Hour + time.Duration(ms)*time.Millisecond) }
	lines.add(at(30), "B", "SETNX -> 0")
	lines.add(at(10), "A", "SETNX -> 1")
	lines.add(at(20), "", "A works.")
	lines.add(at(40), "B", "SETNX -> 0")
	lines.add(at(60), "B", "SETNX -> 0")
	lines.add(at(50), "A", "Lock -> token 1795533376467814")
	lines.add(at(70), "", "A is done.")
	lines.add(at(80), "B", "SETNX -> 0")
	lines.add(at(90), "B", "Lock -> token 1795533376467999, after 1795533376467814")
	lines.finish()
	const want = `  3600.010s  A  SETNX -> 1
  3600.020s  -  A works.
  3600.030s  B  SETNX -> 0
  3600.050s  A  Lock -> token #1
           B  ... the same, 2 more
  3600.070s  -  A is done.
           B  ... the same, 1 more
  3600.090s  B  Lock -> token #2, after #1
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
}
