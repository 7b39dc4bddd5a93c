package main

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

type row struct {
	number    int
	title     string
	reference string
	contended bool // holders enter and leave on a board
	run       func(ctx context.Context, b *bench, e entry, run int) (sample, error)
	work      work     // of each worker process, in a row that has them
	columns   []column // the first is compared with the reference
	goals     []goal
}

// A column is a number of the table.
type column struct {
	title  string
	value  func(sample) float64
	format func(float64) string
}

// A goal is what holdfast has to reach.
type goal struct {
	text string
	met  func(line) bool
}

var (
	p50       = column{"p50", func(s sample) float64 { return float64(s.p50) }, inTime}
	p99       = column{"p99", func(s sample) float64 { return float64(s.p99) }, inTime}
	pairs     = column{"pairs/s", func(s sample) float64 { return s.rate }, inThousands}
	rate      = column{"acquisitions/s", func(s sample) float64 { return s.rate }, inThousands}
	handovers = column{"hand-overs/s", func(s sample) float64 { return s.handovers }, inThousands}
	commands  = column{"commands", func(s sample) float64 { return s.commands }, inDecimals}
	fairness  = column{"Jain", func(s sample) float64 { return s.jain }, inDecimals}
	allocated = column{"allocations", func(s sample) float64 { return s.allocations }, inDecimals}
	cpu       = column{"client CPU", func(s sample) float64 { return float64(s.cpu) }, inTime}
	inside    = column{"called by scripts", func(s sample) float64 { return s.inside }, inDecimals}
	serverCPU = column{"server CPU", func(s sample) float64 { return float64(s.serverCPU) }, inTime}
	served    = column{"in scripts", func(s sample) float64 { return float64(s.served) }, inTime}
	heapBytes = column{"bytes", func(s sample) float64 { return s.bytes }, inThousands}
	objects   = column{"objects", func(s sample) float64 { return s.objects }, inDecimals}
	waited    = column{"writer in, p50", func(s sample) float64 { return float64(s.p50) }, inTime}
	waited99  = column{"writer in, p99", func(s sample) float64 { return float64(s.p99) }, inTime}
	turn      = column{"in turn", func(s sample) float64 { return s.inTurn }, inPercent}
)

// rows are the table's rows in order.
var rows = []row{
	{
		number: 1, title: "lock and unlock, a name of one's own, one goroutine", reference: "bare pair",
		run: runAlone, columns: []column{p50, p99, commands, cpu, serverCPU, served, allocated},
		goals: []goal{most("p50", 1.25, "bare pair"), most("aim: p50", 1.15, "bare pair"),
			{"2 commands", commandsMost(2)}},
	},
	{
		number: 2, title: fmt.Sprintf("%d goroutines, each a name of its own", crowd), reference: "bare pair",
		run: runCrowd, columns: []column{pairs, commands},
		goals: []goal{least("pairs/s", 1.2, "bare pair")},
	},
	{
		number: 3, title: fmt.Sprintf("%d goroutines of one process, one name", mates), reference: "sync.Mutex",
		contended: true,
		run:       runMates, columns: []column{rate, handovers, commands, fairness, turn},
		goals: []goal{
			{"at least 200k acquisitions/s", func(l line) bool { return l.median(rate.value) >= 200e3 }},
			{"in turn, 99 %", func(l line) bool { return l.median(turn.value) >= 0.99 }},
			{"under 0.05 commands each", func(l line) bool { return l.median(commands.value) < 0.05 }},
			evenly,
		},
	},
	{
		number: 4, title: "8 processes, one name", reference: "baton", contended: true,
		run: runProcesses, work: contend, columns: []column{handovers, rate, commands, fairness},
		goals: []goal{
			least("hand-overs/s", 0.75, "baton"), least("aim: hand-overs/s", 0.85, "baton"),
			{"at most 3 commands", commandsMost(3)}, evenly,
		},
	},
	{
		number: 5, title: "two processes taking turns, the time of a hand-over", reference: "baton",
		contended: true,
		run:       runTurns(5), work: takeTurns, columns: []column{p50, p99, commands},
		goals: []goal{most("p50", 1.4, "baton"), most("aim: p50", 1.2, "baton")},
	},
	{
		number: 6, title: "row 1 with a history", reference: subject,
		run: runAlone, columns: []column{p50, p99, commands},
	},
	{
		number: 7, title: "row 2 with a history", reference: subject,
		run: runCrowd, columns: []column{pairs, commands},
	},
	{
		number: 8, title: "row 1 beside redislock", reference: "redislock",
		run: runAlone, columns: []column{p50, p99, commands, cpu, serverCPU, served, allocated},
		goals: []goal{most("p50", 1.1, "redislock")},
	},
	{
		number: 9, title: fmt.Sprintf("4 processes of %d goroutines, one name, 95 %% read", mates), reference: subject,
		contended: true,
		run:       runReaders, work: readAndWrite, columns: []column{rate, commands, waited, waited99},
	},
	{
		number: 10, title: "two processes taking turns, and what one retains, the time until it is in",
		reference: subject, contended: true,
		run: runTurns(10), work: takeTurns, columns: []column{p50, p99, commands},
	},
	{
		number: 11, title: "goroutines in the server's queue, one name", reference: "2 in strict order",
		contended: true,
		run:       runQueue, columns: []column{handovers, commands, serverCPU, fairness},
	},
	{
		number: 12, title: fmt.Sprintf("%d leases that are held, on the heap", leases), reference: "redislock",
		run: runHeld, columns: []column{heapBytes, objects},
	},
	{
		number: 13, title: fmt.Sprintf("%d hosts want a new value, the time until all have it", hosts),
		reference: byHand, contended: true,
		run: runValues, columns: []column{p50, p99, cpu},
	},
	{
		number: 14, title: fmt.Sprintf("what each of %d leases costs at the server", requests), reference: "acquire",
		run: runRequest, columns: []column{serverCPU, served, commands, inside},
	},
}

var evenly = goal{"Jain at least 0.99", func(l line) bool { return l.median(fairness.value) >= 0.99 }}

func most(what string, limit float64, of string) goal {
	return goal{fmt.Sprintf("%s at most %v x %s", what, limit, of), func(l line) bool {
		ratio := median(l.ratios)
		return ratio > 0 && ratio <= limit
	}}
}

func least(what string, limit float64, of string) goal {
	return goal{fmt.Sprintf("%s at least %v x %s", what, limit, of),
		func(l line) bool { return median(l.ratios) >= limit }}
}

// commandsMost allows for the few commands that are no operation's, such as a renewal.
func commandsMost(limit float64) func(line) bool {
	return func(l line) bool {
		sent := l.median(commands.value)
		return sent > 0 && sent <= limit+0.01
	}
}

func inTime(v float64) string {
	d := time.Duration(v)
	if d < time.Millisecond {
		return strconv.FormatFloat(float64(d)/1e3, 'f', 1, 64) + " us"
	}
	return strconv.FormatFloat(float64(d)/1e6, 'f', 2, 64) + " ms"
}

func inThousands(v float64) string {
	if v < 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v/1000, 'f', 1, 64) + "k"
}

func inDecimals(v float64) string { return strconv.FormatFloat(v, 'f', 3, 64) }

func inPercent(v float64) string { return strconv.FormatFloat(100*v, 'f', 1, 64) + " %" }
