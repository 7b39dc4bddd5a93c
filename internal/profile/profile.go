// Package profile sums up time by stack, in bounded memory, and writes it as a profile that go tool
// pprof reads.
//
// The format is profile.proto of github.com/google/pprof, compressed with gzip. Only the fields
// that pprof needs are written.
package profile

import (
	"compress/gzip"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Most is how many stacks are kept. When one more comes, that with the least time is counted among
// the others, which have no stack.
const Most = 1000

// depth is how many frames of a stack are kept.
const depth = 32

// A Stack is the innermost calls of a goroutine, as runtime.Callers tells them.
type Stack [depth]uintptr

// A Sample is what is kept apart.
type Sample struct {
	Stack Stack
	Kind  string // labels; empty: none
	Class string
}

// A total is what a sample adds up to.
type total struct {
	count int64
	time  time.Duration
}

// A Profile adds up samples. It is safe for concurrent use.
type Profile struct {
	began time.Time

	mu     sync.Mutex
	totals map[Sample]total
	others total
}

// New begins a profile.
func New() *Profile { return &Profile{began: time.Now(), totals: make(map[Sample]total)} }

// Add adds one sample.
func (p *Profile) Add(s Sample, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, known := p.totals[s]
	if !known && len(p.totals) >= Most {
		p.forget()
	}
	p.totals[s] = total{t.count + 1, t.time + took}
}

// forget counts the stack with the least time among the others.
func (p *Profile) forget() {
	var least Sample
	first := true
	for s, t := range p.totals {
		if first || t.time < p.totals[least].time {
			least, first = s, false
		}
	}
	p.others.count += p.totals[least].count
	p.others.time += p.totals[least].time
	delete(p.totals, least)
}

// Write writes the profile. Skip tells which functions are left out at the top of a stack.
func (p *Profile) Write(w io.Writer, skip func(function string) bool) error {
	zipped := gzip.NewWriter(w)
	if _, err := zipped.Write(p.encode(skip)); err != nil {
		return err
	}
	return zipped.Close()
}

// encode returns the profile as profile.proto says.
func (p *Profile) encode(skip func(function string) bool) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := tables{strings: map[string]uint64{"": 0}, texts: []string{""}, functions: map[function]uint64{}, locations: map[location]uint64{}}
	var out message
	out.embed(1, t.valueType("waits", "count"))
	out.embed(1, t.valueType("delay", "nanoseconds"))
	for s, sum := range p.totals {
		out.embed(2, t.sample(t.stack(s.Stack, skip), sum, s))
	}
	if p.others.count > 0 {
		out.embed(2, t.sample([]uint64{t.location(function{"others", ""}, 0)}, p.others, Sample{}))
	}
	out = append(out, t.encoded...)
	out.number(9, uint64(p.began.UnixNano()))
	out.number(10, uint64(time.Since(p.began)))
	out.embed(11, t.valueType("delay", "nanoseconds"))
	out.number(12, 1)
	out.number(14, t.text("delay"))
	for _, text := range t.texts {
		out.bytes(6, []byte(text))
	}
	return out
}

// tables give numbers to what samples name. Functions and locations are encoded as they come.
type tables struct {
	strings   map[string]uint64
	texts     []string
	functions map[function]uint64
	locations map[location]uint64
	encoded   message
}

type function struct{ name, file string }

type location struct {
	function uint64
	line     int
}

func (t *tables) text(s string) uint64 {
	n, known := t.strings[s]
	if !known {
		n = uint64(len(t.texts))
		t.strings[s], t.texts = n, append(t.texts, s)
	}
	return n
}

func (t *tables) valueType(kind, unit string) message {
	var out message
	out.number(1, t.text(kind))
	out.number(2, t.text(unit))
	return out
}

// stack numbers the frames of a stack, the innermost first.
func (t *tables) stack(stack Stack, skip func(string) bool) []uint64 {
	length := slices.Index(stack[:], 0)
	if length < 0 {
		length = depth
	}
	var out []uint64
	for frames := runtime.CallersFrames(stack[:length]); ; {
		frame, more := frames.Next()
		if len(out) > 0 || !skip(frame.Function) {
			out = append(out, t.location(function{frame.Function, frame.File}, frame.Line))
		}
		if !more {
			return out
		}
	}
}

func (t *tables) location(f function, line int) uint64 {
	of, known := t.functions[f]
	if !known {
		of = uint64(len(t.functions) + 1)
		t.functions[f] = of
		var out message
		out.number(1, of)
		out.number(2, t.text(f.name))
		out.number(3, t.text(f.name))
		out.number(4, t.text(f.file))
		t.encoded.embed(5, out)
	}
	at := location{of, line}
	n, known := t.locations[at]
	if !known {
		n = uint64(len(t.locations) + 1)
		t.locations[at] = n
		var where, out message
		where.number(1, of)
		where.number(2, uint64(line))
		out.number(1, n)
		out.embed(4, where)
		t.encoded.embed(4, out)
	}
	return n
}

func (t *tables) sample(stack []uint64, sum total, s Sample) message {
	var out message
	for _, n := range stack {
		out.number(1, n)
	}
	out.number(2, uint64(sum.count))
	out.number(2, uint64(sum.time))
	for _, label := range [][2]string{{"kind", s.Kind}, {"class", s.Class}} {
		if label[1] == "" {
			continue
		}
		var l message
		l.number(1, t.text(label[0]))
		l.number(2, t.text(label[1]))
		out.embed(3, l)
	}
	return out
}
