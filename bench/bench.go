package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

const (
	patience   = time.Minute      // how long workers may take to begin, and to hand over at all
	homecoming = 15 * time.Second // how long they may take to go home
)

// A bench is the place where the rows run: a server, and how long to measure.
type bench struct {
	target  target
	server  *redisserver.Server
	version string // of the server
	dir     string // for boards
	warmup  time.Duration
	seconds time.Duration
	runs    int
}

// A line is a contender's part of a row, over all runs.
type line struct {
	name       string
	samples    []sample
	ratios     []float64 // one for each run in which both it and the reference ran
	violations int64
	stuck      int   // runs after which somebody still waited
	err        error // the first one; its other runs count
}

// measure runs a row: all its contenders in turn, as often as asked for.
func (b *bench) measure(ctx context.Context, r row, wanted []entry, progress io.Writer) []line {
	value := r.columns[0].value
	lines := make([]line, 0, len(wanted))
	for _, e := range wanted {
		lines = append(lines, line{name: e.name})
	}
	for run := range b.runs {
		var reference float64
		for i, e := range wanted {
			fmt.Fprintf(progress, "\r\x1b[Krow %d, run %d of %d: %s", r.number, run+1, b.runs, e.name)
			runtime.GC() // the garbage of one is not paid for by the next
			s, err := r.run(ctx, b, e, run)
			lines[i].violations += s.violations
			if err != nil {
				if lines[i].err == nil {
					lines[i].err = err
				}
				continue
			}
			if s.stuck {
				lines[i].stuck++
			}
			lines[i].samples = append(lines[i].samples, s)
			if e.name == r.reference {
				reference = value(s)
			}
			if reference > 0 {
				lines[i].ratios = append(lines[i].ratios, value(s)/reference)
			}
		}
	}
	fmt.Fprint(progress, "\r\x1b[K")
	return lines
}

func (l line) median(value func(sample) float64) float64 {
	var xs []float64
	for _, s := range l.samples {
		xs = append(xs, value(s))
	}
	return median(xs)
}
