// Command table tries every mutant and prints which check caught it, in how many runs, and after
// how long.
//
//	go -C proof run ./mutant/table [-runs n] [WORDS]
//
// WORDS choose the mutants whose names, or the files that they change, contain them. The check of
// each mutant runs n times (1). A mutant that its check misses in any run is not caught, and the
// command fails. It also fails if a mutant cannot be tried.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/proof/mutant"
)

const root = ".."

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	runs := flag.Int("runs", 1, "how often the check of each mutant is run: it must notice each time")
	flag.Parse()
	if err := run(ctx, *runs, strings.Join(flag.Args(), " ")); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, runs int, words string) error {
	began := time.Now()
	chosen, err := choose(runs, words)
	if err != nil {
		return err
	}
	if err := sound(ctx, chosen); err != nil {
		return err
	}
	fmt.Printf("| mutant | check | caught | after |\n|---|---|---|---|\n")
	escaped := 0
	for _, m := range chosen {
		var verdict mutant.Verdict
		err := inTemp(func(dir string) (err error) {
			verdict, err = m.Try(ctx, root, dir, runs)
			return err
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || !verdict.Caught() {
			escaped++
		}
		fmt.Println(row(m, verdict, err))
		switch {
		case err != nil:
			fmt.Fprintln(os.Stderr, err)
		case !verdict.Caught():
			fmt.Fprintln(os.Stderr, end(verdict.Output))
		}
	}
	fmt.Printf("\n%d of %d caught, in %v\n", len(chosen)-escaped, len(chosen), time.Since(began).Round(time.Second))
	if escaped > 0 {
		return fmt.Errorf("%d escaped", escaped)
	}
	return nil
}

// inTemp runs something in a directory that is then removed.
func inTemp(do func(dir string) error) error {
	dir, err := os.MkdirTemp("", "holdfast-mutant-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	return do(dir)
}

// choose finds the mutants whose names contain the words. Each of their patches must fit, before
// any check takes its time.
func choose(runs int, words string) (chosen []mutant.Mutant, err error) {
	if runs < 1 {
		return nil, fmt.Errorf("-runs is %d, allowed: 1 and more", runs)
	}
	for _, m := range mutant.Mutants() {
		changes := func(p mutant.Patch) bool { return strings.Contains(p.File, words) }
		if strings.Contains(m.Name, words) || slices.ContainsFunc(m.Patches, changes) {
			chosen = append(chosen, m)
			err = errors.Join(err, inTemp(func(dir string) error { return m.Apply(root, dir) }))
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no mutant has %q in its name or in a file that it changes", words)
	}
	return chosen, err
}

// end returns the last lines of the output of a check that did not notice.
func end(output string) string {
	const most = 40
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}

// row returns a mutant's line of the table.
func row(m mutant.Mutant, v mutant.Verdict, err error) string {
	caught := fmt.Sprintf("%d of %d", v.Failed, v.Runs)
	if v.Stuck > 0 {
		caught += fmt.Sprintf(", %d stuck", v.Stuck)
	}
	switch {
	case err != nil:
		caught = "NOT TRIED"
	case !v.Caught():
		caught = "NOT CAUGHT: " + caught
	}
	return fmt.Sprintf("| %s | %v | %s | %.1f s |", m.Name, m.Caught, caught, v.After.Seconds())
}

// sound runs each check where nothing is broken.
func sound(ctx context.Context, mutants []mutant.Mutant) error {
	done := map[mutant.Check]bool{}
	err := inTemp(func(dir string) error {
		if err := mutant.Copy(root, dir); err != nil {
			return err
		}
		for _, m := range mutants {
			if done[m.Caught] {
				continue
			}
			if err := mutant.Sound(ctx, dir, m.Caught); err != nil {
				return err
			}
			done[m.Caught] = true
		}
		return nil
	})
	if err == nil {
		fmt.Printf("%d checks pass where nothing is broken\n\n", len(done))
	}
	return err
}
