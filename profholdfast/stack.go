package profholdfast

import (
	"runtime"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

// addSample adds a sample to a profile. Each of its frames, the innermost first, gets a location
// and a function of its own: Profile.Compact makes one of those that are equal.
func addSample(to *profile.Profile, frames []runtime.Frame, sum total, labels map[string][]string) {
	sample := &profile.Sample{Value: []int64{sum.waits, int64(sum.delay)}, Label: labels}
	for _, frame := range frames {
		id := uint64(len(to.Location) + 1)
		function := &profile.Function{
			ID: id, Name: frame.Function, SystemName: frame.Function, Filename: frame.File}
		location := &profile.Location{ID: id, Line: []profile.Line{{Function: function, Line: int64(frame.Line)}}}
		to.Function, to.Location = append(to.Function, function), append(to.Location, location)
		sample.Location = append(sample.Location, location)
	}
	to.Sample = append(to.Sample, sample)
}

// callersOfHoldfast returns the frames of a stack from the caller of package holdfast on. Above
// holdfast may be an observer that called this one. A stack without holdfast is kept whole.
func callersOfHoldfast(counters []uintptr) []runtime.Frame {
	if end := slices.Index(counters, 0); end >= 0 {
		counters = counters[:end]
	}
	var all []runtime.Frame
	for frames, more := runtime.CallersFrames(counters), true; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		all = append(all, frame)
	}
	called := slices.IndexFunc(all, isOwnFrame)
	if called < 0 {
		return all
	}
	caller := slices.IndexFunc(all[called:], func(f runtime.Frame) bool { return !isOwnFrame(f) })
	if caller < 0 {
		return all
	}
	return all[called+caller:]
}

// isOwnFrame reports whether a call is one of package holdfast, or of a package inside it.
func isOwnFrame(f runtime.Frame) bool {
	const root = "github.com/holdfast-go/holdfast"
	return strings.HasPrefix(f.Function, root+".") || strings.HasPrefix(f.Function, root+"/internal/")
}
