package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// barWidth is the number of columns of a bar, and mostBars how many bars can be read.
const (
	barWidth = 60
	mostBars = 3
)

// drawBars draws who was inside when, a bar for each process, from the begin of a play to its end.
// The bars are ASCII, since a terminal for Chinese draws others twice as wide.
func drawBars(out io.Writer, from, to time.Time, list []tenure) {
	var processes []string
	for _, t := range list {
		if !slices.Contains(processes, t.Name) {
			processes = append(processes, t.Name)
		}
	}
	if len(processes) == 0 || len(processes) > mostBars {
		return
	}
	slices.Sort(processes)
	fmt.Fprintf(out, "\n  "+text("Inside, from 0 to %.3fs:")+"\n", to.Sub(from).Seconds())
	for _, process := range processes {
		fmt.Fprintf(out, "  %s |%s|\n", process, bar(list, process, from, to))
	}
}

// bar is the line of one process. A column is drawn if the process was inside at the middle of its
// time, so that two tenures one after the other share no column. A tenure between two middles is a
// colon.
func bar(list []tenure, process string, from, to time.Time) string {
	column := max(to.Sub(from)/barWidth, 1)
	columns := []byte(strings.Repeat(" ", barWidth))
	for _, t := range list {
		if t.Name != process {
			continue
		}
		drawn := false
		for i := range columns {
			middle := from.Add(time.Duration(i)*column + column/2)
			if !t.From.After(middle) && t.To.After(middle) {
				columns[i], drawn = '=', true
			}
		}
		if i := min(max(int(t.From.Sub(from)/column), 0), barWidth-1); !drawn && columns[i] == ' ' {
			columns[i] = ':'
		}
	}
	return string(columns)
}
