// Command table tries every mutant and prints who caught it, and after how long. Words name those to try. It runs in the
// directory of the module proof.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/proof/mutant"
)

const root = ".."

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, words []string) error {
	began := time.Now()
	var chosen []mutant.Mutant
	for _, m := range mutant.Mutants() {
		if len(words) == 0 || strings.Contains(m.Name, strings.Join(words, " ")) {
			chosen = append(chosen, m)
		}
	}
	if err := sound(ctx, chosen); err != nil {
		return err
	}
	fmt.Printf("| mutant | caught by | after |\n|---|---|---|\n")
	escaped := 0
	for _, m := range chosen {
		verdict, err := try(ctx, m)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		after := fmt.Sprintf("%.1f s", verdict.After.Seconds())
		if err != nil || !verdict.Caught {
			escaped++
			after = "NOT CAUGHT"
		}
		fmt.Printf("| %s | %v | %s |\n", m.Name, m.Caught, after)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	fmt.Printf("\n%d of %d caught, in %v\n", len(chosen)-escaped, len(chosen), time.Since(began).Round(time.Second))
	if escaped > 0 {
		return fmt.Errorf("%d escaped", escaped)
	}
	return nil
}

// sound runs each check where nothing is broken.
func sound(ctx context.Context, mutants []mutant.Mutant) error {
	dir, err := os.MkdirTemp("", "holdfast-mutant-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := mutant.Copy(root, dir); err != nil {
		return err
	}
	done := map[mutant.Check]bool{}
	for _, m := range mutants {
		c := m.Caught
		c.Tries = 1
		if !done[c] {
			if err := mutant.Sound(ctx, dir, c); err != nil {
				return err
			}
			done[c] = true
		}
	}
	fmt.Printf("%d checks pass where nothing is broken\n\n", len(done))
	return nil
}

func try(ctx context.Context, m mutant.Mutant) (mutant.Verdict, error) {
	dir, err := os.MkdirTemp("", "holdfast-mutant-")
	if err != nil {
		return mutant.Verdict{}, err
	}
	defer os.RemoveAll(dir)
	return m.Try(ctx, root, dir)
}
