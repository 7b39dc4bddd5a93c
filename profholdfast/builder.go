package profholdfast

import (
	"runtime"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

// A builder adds samples to a profile, whose functions and locations have numbers.
type builder struct {
	profile   *profile.Profile
	functions map[function]*profile.Function
	locations map[location]*profile.Location
}

type function struct{ name, file string }

type location struct {
	function
	line int
}

func newBuilder(empty *profile.Profile) *builder {
	return &builder{profile: empty, functions: make(map[function]*profile.Function),
		locations: make(map[location]*profile.Location)}
}

func (b *builder) add(stack []*profile.Location, sum total, labels map[string][]string) {
	b.profile.Sample = append(b.profile.Sample, &profile.Sample{
		Location: stack, Value: []int64{sum.waits, int64(sum.delay)}, Label: labels,
	})
}

// addStack returns the frames of a stack, the innermost first.
func (b *builder) addStack(counters []uintptr) []*profile.Location {
	var out []*profile.Location
	for _, frame := range callersOfHoldfast(counters) {
		out = append(out, b.addLocation(frame))
	}
	return out
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

func (b *builder) addLocation(frame runtime.Frame) *profile.Location {
	f := function{frame.Function, frame.File}
	at := location{f, frame.Line}
	if b.locations[at] == nil {
		if b.functions[f] == nil {
			b.functions[f] = &profile.Function{
				ID: uint64(len(b.functions) + 1), Name: f.name, SystemName: f.name, Filename: f.file}
			b.profile.Function = append(b.profile.Function, b.functions[f])
		}
		b.locations[at] = &profile.Location{
			ID:   uint64(len(b.locations) + 1),
			Line: []profile.Line{{Function: b.functions[f], Line: int64(frame.Line)}},
		}
		b.profile.Location = append(b.profile.Location, b.locations[at])
	}
	return b.locations[at]
}
