package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// cells are a row's lines as a table of words.
func cells(r row, lines []line) [][]string {
	head := []string{"contender"}
	for _, c := range r.columns {
		head = append(head, c.title)
	}
	head = append(head, "ratio to "+r.reference)
	if r.contended {
		head = append(head, "two at once")
	}
	table := [][]string{head}
	for _, l := range lines {
		words := []string{l.name}
		for _, c := range r.columns {
			if len(l.samples) == 0 {
				words = append(words, "-")
			} else {
				words = append(words, c.format(l.median(c.value)))
			}
		}
		words = append(words, spread(l))
		if r.contended {
			words = append(words, fmt.Sprint(l.violations))
		}
		table = append(table, words)
	}
	return table
}

// spread shows a ratio and how far the runs were apart.
func spread(l line) string {
	if len(l.ratios) == 0 {
		return "-"
	}
	middle := median(l.ratios) // sorts them
	return fmt.Sprintf("%s (%s-%s)", short(middle), short(l.ratios[0]), short(l.ratios[len(l.ratios)-1]))
}

// short writes a ratio with three digits that count.
func short(v float64) string {
	if v >= 10 || v == 0 {
		return fmt.Sprintf("%.0f", v)
	}
	if v < 0.1 {
		return fmt.Sprintf("%.2g", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// printTable prints a table in Markdown, with columns aligned, the first to the left and the others
// to the right.
func printTable(w io.Writer, table [][]string) {
	widths := make([]int, len(table[0]))
	for _, words := range table {
		for i, word := range words {
			widths[i] = max(widths[i], utf8.RuneCountInString(word))
		}
	}
	for n, words := range table {
		fmt.Fprintf(w, "| %-*s |", widths[0], words[0])
		for i, word := range words[1:] {
			fmt.Fprintf(w, " %*s |", widths[i+1], word)
		}
		fmt.Fprintln(w)
		if n == 0 {
			fmt.Fprintf(w, "|---|%s\n", strings.Repeat("---:|", len(words)-1))
		}
	}
}

// report prints a row. It reports whether nobody was inside with another, and nothing failed.
func report(w io.Writer, r row, lines []line) bool {
	fmt.Fprintf(w, "\n**%d. %s**\n\n", r.number, r.title)
	printTable(w, cells(r, lines))
	fmt.Fprintln(w)
	fine := true
	for _, goal := range r.goals {
		fmt.Fprintf(w, "  target for %s: %s%s\n", subject, goal.text, verdict(goal, lines))
	}
	for _, l := range lines {
		if l.violations > 0 {
			fine = false
			fmt.Fprintf(w, "  VIOLATION: %s let two in at once, %d times\n", l.name, l.violations)
		}
		if l.stuck > 0 {
			fmt.Fprintf(w,
				"  %s: after %d runs somebody still waited %v after the others had gone, and was left behind\n",
				l.name, l.stuck, stopTimeout)
		}
		if l.err != nil {
			fine = false
			fmt.Fprintf(w, "  %s failed: %v\n", l.name, l.err)
		}
	}
	return fine
}

// verdict reports whether the subject has reached a goal, if it took part.
func verdict(g goal, lines []line) string {
	for _, l := range lines {
		if l.name == subject && len(l.samples) > 0 {
			if g.met(l) {
				return ": met"
			}
			return ": missed"
		}
	}
	return ""
}

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
