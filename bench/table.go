package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// A grid is a table of words.
type grid [][]string

// cells puts a row's lines into a grid.
func cells(r row, lines []line) grid {
	head := []string{"contender"}
	for _, c := range r.columns {
		head = append(head, c.title)
	}
	head = append(head, "ratio to "+r.reference)
	if r.contended {
		head = append(head, "two at once")
	}
	g := grid{head}
	for _, l := range lines {
		words := []string{l.name}
		for _, c := range r.columns {
			if len(l.samples) == 0 {
				words = append(words, "-")
			} else {
				words = append(words, c.format(c.value(l.medians)))
			}
		}
		words = append(words, spread(l))
		if r.contended {
			words = append(words, fmt.Sprint(l.violations))
		}
		g = append(g, words)
	}
	return g
}

// spread shows a ratio and how far the runs were apart.
func spread(l line) string {
	if len(l.ratios) == 0 {
		return "-"
	}
	return fmt.Sprintf("%s (%s-%s)", short(l.ratio), short(l.ratios[0]), short(l.ratios[len(l.ratios)-1]))
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

// write prints the grid with columns aligned, the first to the left and the others to the right.
func (g grid) write(w io.Writer) {
	widths := make([]int, len(g[0]))
	for _, words := range g {
		for i, word := range words {
			widths[i] = max(widths[i], utf8.RuneCountInString(word))
		}
	}
	for _, words := range g {
		fmt.Fprintf(w, "  %-*s", widths[0], words[0])
		for i, word := range words[1:] {
			fmt.Fprintf(w, "  %*s", widths[i+1], word)
		}
		fmt.Fprintln(w)
	}
}

// markdown prints the grid for a document.
func (g grid) markdown(w io.Writer) {
	for i, words := range g {
		fmt.Fprintf(w, "| %s |\n", strings.Join(words, " | "))
		if i == 0 {
			fmt.Fprintf(w, "|---|%s\n", strings.Repeat("---:|", len(words)-1))
		}
	}
}

// report prints a row. It reports whether nobody was inside with another, and nothing failed.
func report(w io.Writer, r row, lines []line, markdown bool) bool {
	fine, g := true, cells(r, lines)
	if markdown {
		fmt.Fprintf(w, "\n**%d. %s**\n\n", r.number, r.title)
		g.markdown(w)
		fmt.Fprintln(w)
	} else {
		fmt.Fprintf(w, "\n%d. %s\n", r.number, r.title)
		g.write(w)
	}
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
				l.name, l.stuck, homecoming)
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
			if g.met(l.ratio, l.medians) {
				return ": met"
			}
			return ": missed"
		}
	}
	return ""
}
