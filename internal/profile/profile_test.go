package profile

import (
	"testing"
	"time"
)

// The memory is bounded, nothing is lost of the sums, and the heaviest stacks stay.
func TestStacksAreBounded(t *testing.T) {
	p := New()
	heavy := Sample{Kind: "mutex", Class: "heavy"}
	p.Add(heavy, time.Hour)
	for i := range 3 * Most {
		p.Add(Sample{Stack: Stack{uintptr(i + 1)}}, time.Second)
	}
	sum := p.others
	for _, t := range p.totals {
		sum.count, sum.time = sum.count+t.count, sum.time+t.time
	}
	if len(p.totals) != Most || p.totals[heavy].time != time.Hour {
		t.Errorf("%d stacks, the heavy one with %v", len(p.totals), p.totals[heavy].time)
	}
	if want := (total{3*Most + 1, time.Hour + 3*Most*time.Second}); sum != want {
		t.Errorf("the sum is %v, want %v", sum, want)
	}
}

func BenchmarkAdd(b *testing.B) {
	p := New()
	for i := range Most - 1 {
		p.Add(Sample{Stack: Stack{uintptr(i + 1)}}, time.Second)
	}
	s := Sample{Kind: "mutex"}
	b.ReportAllocs()
	for b.Loop() {
		p.Add(s, time.Millisecond)
	}
}
