package fence_test

import (
	"math/rand/v2"
	"slices"
	"time"
)

// patience is how long a step may take until it counts as one that waits for another's. It judges
// nothing: a step that is slow makes another order, and no order may do harm.
const patience = 2 * time.Millisecond

// interleave runs functions that call step before each of their steps. It lets them go on one at a
// time, in an order that rng draws. While a function waits inside a step, the others go on. The
// result is how often that was so.
func interleave(rng *rand.Rand, functions ...func(step func())) (waited int) {
	type event struct {
		function int
		over     bool
	}
	events, turns := make(chan event), make([]chan struct{}, len(functions))
	for i, f := range functions {
		turns[i] = make(chan struct{})
		go func() {
			f(func() {
				events <- event{function: i}
				<-turns[i]
			})
			events <- event{function: i, over: true}
		}()
	}
	var parked []int // functions that stand before a step
	running := len(functions)
	fresh := running // of the running ones, those that may not wait for another
	for running > 0 || len(parked) > 0 {
		var late <-chan time.Time // never, if there is nothing else to do
		switch {
		case len(parked) > 0 && fresh > 0:
			late = time.After(patience)
		case len(parked) > 0:
			late = time.After(0)
		}
		select {
		case e := <-events:
			running--
			fresh = max(0, fresh-1)
			if !e.over {
				parked = append(parked, e.function)
			}
			continue
		case <-late:
			waited += fresh
			fresh = 0
		}
		next := rng.IntN(len(parked))
		i := parked[next]
		parked = slices.Delete(parked, next, next+1)
		running++
		fresh++
		turns[i] <- struct{}{}
	}
	return waited
}
