package engine

import (
	"slices"
	"testing"
)

// Effects run in their order, after the mutex is free, and once.
func TestGuardRunsEffectsUnlocked(t *testing.T) {
	var g guard
	var ran []int
	g.Lock()
	for i := range 3 {
		g.after(func() {
			g.Lock() // it would wait for ever if the mutex were held
			defer g.Unlock()
			ran = append(ran, i)
		})
	}
	if ran != nil {
		t.Errorf("%v ran with the mutex held", ran)
	}
	g.Unlock()
	g.Lock()
	g.Unlock() //nolint:staticcheck // nothing may be left to run
	if !slices.Equal(ran, []int{0, 1, 2}) {
		t.Errorf("%v ran", ran)
	}
}
