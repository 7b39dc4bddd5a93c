package main

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

// Repeated lines are told with their number, and tokens in the order in which they are first shown.
func TestTimeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		lines := newTimeline(&out)
		for _, event := range [][2]string{
			{"A", "SETNX -> 1"}, {"", "A works."}, {"B", "SETNX -> 0"}, {"B", "SETNX -> 0"},
			{"A", "Lock -> token 1795533376467814"}, {"B", "SETNX -> 0"}, {"", "A is done."}, {"B", "SETNX -> 0"},
			{"B", "Lock -> token 1795533376467999, after 1795533376467814"},
		} {
			<-time.After(10 * time.Millisecond)
			lines.add(event[0], event[1])
		}
		lines.flush()
		const want = `   0.010s  A  SETNX -> 1
   0.020s  -  A works.
   0.030s  B  SETNX -> 0
   0.050s  A  Lock -> token #1
           B  ... the same, 2 more
   0.070s  -  A is done.
           B  ... the same, 1 more
   0.090s  B  Lock -> token #2, after #1
`
		if out.String() != want {
			t.Errorf("got\n%swant\n%s", &out, want)
		}
	})
}
