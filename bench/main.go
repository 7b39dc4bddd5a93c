package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// subject is the contender that has goals.
const subject = "holdfast"

func main() {
	var err error
	if len(os.Args) == 3 && os.Args[1] == childArg {
		err = child(os.Args[2])
	} else {
		err = run(os.Args[1:], os.Stdout, os.Stderr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run reads the flags and prints the table.
func run(args []string, out, progress io.Writer) (err error) {
	flags := flag.NewFlagSet("bench", flag.ExitOnError)
	var (
		which      = flags.String("rows", "1,2,3,4,5,8,9,10,11,12,13,14", "the `rows` to run")
		contenders = flags.String("contenders", "", "the `names` of those to run, next to the references; empty: all")
		runs       = flags.Int("runs", 5, "how often each contender runs")
		seconds    = flags.Float64("seconds", 0.7, "how `long` each of these runs is measured")
		poll       = flags.Duration("poll", 2*time.Millisecond, "how often contenders ask that poll")
	)
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *runs < 1 || *seconds <= 0 || *poll <= 0 || flags.NArg() > 0 {
		return fmt.Errorf("-runs, -seconds and -poll must be positive, and there are no other arguments")
	}
	table, err := chooseRows(*which)
	if err != nil {
		return err
	}
	names := splitCommas(*contenders)
	for _, n := range names {
		if !slices.ContainsFunc(entries, func(e entry) bool { return strings.HasPrefix(e.name, n) }) {
			return fmt.Errorf("-contenders: nobody's name begins with %q", n)
		}
	}

	b := &bench{runs: *runs, seconds: time.Duration(*seconds * float64(time.Second))}
	b.warmup = min(b.seconds/2, 200*time.Millisecond)
	b.target.Poll = *poll
	stop, err := b.start(context.Background())
	if err != nil {
		return err
	}
	defer stop()

	fmt.Fprintf(out, "%s, %d CPUs, %s %s/%s; medians of %d runs of %v, in brackets the range of the ratios;\n",
		b.version, runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, b.runs, b.seconds)
	fmt.Fprintf(out, "those that poll ask every %v\n", *poll)
	fine := true
	for _, r := range table {
		lines := b.measure(context.Background(), r, invited(r, names), progress)
		fine = report(out, r, lines) && fine
	}
	if !fine {
		return fmt.Errorf("not everything went as it should; see the table")
	}
	return nil
}

func chooseRows(numbers string) ([]row, error) {
	var chosen []row
	for _, word := range splitCommas(numbers) {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > len(rows) {
			return nil, fmt.Errorf("-rows: %q is no row; there are 1 to %d", word, len(rows))
		}
		chosen = append(chosen, rows[n-1])
	}
	return chosen, nil
}

// invited returns those that take part in r: the named ones, or all, and the reference first.
func invited(r row, names []string) []entry {
	var in []entry
	for _, e := range entries {
		named := slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(e.name, n) })
		switch {
		case !e.takesPart(r.number):
		case e.name == r.reference:
			in = slices.Insert(in, 0, e)
		case named || len(names) == 0:
			in = append(in, e)
		}
	}
	return in
}

func splitCommas(words string) []string {
	return strings.FieldsFunc(words, func(c rune) bool { return c == ',' })
}

const (
	startTimeout = time.Minute      // how long workers may take to begin, and to hand over at all
	stopTimeout  = 15 * time.Second // how long they may take to end
)

// A bench is what the rows run with: a server, and how long to measure.
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
