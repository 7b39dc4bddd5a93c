package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
)

// TestMain lets the test binary be a worker process, which is the program itself again.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == childArg {
		main()
		return
	}
	os.Exit(leak.Main(m))
}

// The rows of several processes run with HOLDFAST_PROOF=1 alone.
func TestTable(t *testing.T) {
	rows, wanted := "1,2,3", []string{"**1. ", "**2. ", "**3. ", "| bare pair ", "| holdfast "}
	if os.Getenv("HOLDFAST_PROOF") == "1" {
		rows = "1,2,3,4,5,9,10,11,12,13,14"
		wanted = append(wanted, "**4. ", "**5. ", "| baton ", "**10. ", "**12. ", "**13. ", "**14. ")
	}
	var out bytes.Buffer
	args := []string{"-rows", rows, "-runs", "1", "-seconds", "0.05", "-contenders", "holdfast"}
	if err := run(args, &out, io.Discard); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range wanted {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}

func TestFlags(t *testing.T) {
	for name, args := range map[string][]string{
		"row":       {"-rows", "15"},
		"no number": {"-rows", "one"},
		"contender": {"-contenders", "nobody"},
		"runs":      {"-runs", "0"},
		"seconds":   {"-seconds", "-1"},
		"argument":  {"more"},
	} {
		if err := run(args, io.Discard, io.Discard); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestBoardIsShared(t *testing.T) {
	path := filepath.Join(t.TempDir(), "board")
	one, err := openBoard(path)
	if err != nil {
		t.Fatal(err)
	}
	other, err := openBoard(path)
	if err != nil {
		t.Fatal(err)
	}
	one.enter(0)
	one.leave(0)
	other.enter(1)
	if n := one.violations.Load(); n != 0 {
		t.Errorf("%d violations, though one left before the other came", n)
	}
	one.enter(0)
	if n := other.violations.Load(); n != 1 {
		t.Errorf("two at once count as %d", n)
	}
}

func TestInTurn(t *testing.T) {
	const n = 8
	on := new(board)
	on.ready.Store(n)
	for worker := range n {
		on.ask(worker)
	}
	for i := range 10 * n { // all in a circle
		on.enter(i % n)
		on.leave(i % n)
		on.ask(i % n)
	}
	if got := on.tally(n).inTurn; got < 9*n {
		t.Errorf("in a circle %d of %d are in turn", got, 10*n)
	}
	before := on.tally(n).inTurn
	for range 100 { // one alone
		on.enter(0)
		on.leave(0)
		on.ask(0)
	}
	if got := on.tally(n).inTurn - before; got > 1 {
		t.Errorf("%d are in turn when one overtakes all", got)
	}
}

func TestCount(t *testing.T) {
	stats := map[string]int{"evalsha": 5, "set": 3, "get": 7, "info": 1, "script|load": 1, "client|setinfo": 2,
		"scripts": 9}
	if got := count(stats, nil); got != 8 {
		t.Errorf("without plain commands: %d", got)
	}
	if got := count(stats, []string{"set"}); got != 11 {
		t.Errorf("with set: %d", got)
	}
}

func TestStatistics(t *testing.T) {
	got := []float64{jain([]int64{5, 5, 5, 5}), jain([]int64{8, 0, 0, 0}), median([]float64{9, 1, 5}),
		median([]float64{9, 1, 5, 6}), float64(percentile([]time.Duration{1, 2, 3, 4}, 0.99))}
	if want := []float64{1, 0.25, 5, 5.5, 4}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
