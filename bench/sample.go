package main

import (
	"slices"
	"time"
)

// A sample is what one contender did in one run of a row. Numbers that a row does not have are 0.
type sample struct {
	p50, p99       time.Duration
	rate           float64       // pairs or acquisitions a second
	handovers      float64       // a second
	commands       float64       // for each pair, acquisition or hand-over, whatever the row is about
	inside         float64       // for each, commands that scripts called
	served         time.Duration // for each, the server's time for these commands
	serverCPU      time.Duration // for each, of the server
	cpu            time.Duration // for each, of the process of the bench
	allocations    float64       // for each, of the process of the bench
	bytes, objects float64       // on the heap, for each lease
	jain           float64
	inTurn         float64
	violations     int64
	stuck          bool // somebody still waited when all was over
}

// percentile returns the value below which the share p of the sorted times lies, or 0 if there are
// none.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(p*float64(len(sorted))), len(sorted)-1)]
}

// median returns the middle of xs, or 0 if there are none. It sorts xs.
func median(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	slices.Sort(xs)
	if n := len(xs); n%2 == 0 {
		return (xs[n/2-1] + xs[n/2]) / 2
	}
	return xs[len(xs)/2]
}

// jain returns Jain's index of fairness: the square of the sum over n times the sum of the squares.
func jain(counts []int64) float64 {
	var sum, squares float64
	for _, c := range counts {
		sum += float64(c)
		squares += float64(c) * float64(c)
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(counts)) * squares)
}

// share returns part/whole, or 0 where there is no whole.
func share(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
