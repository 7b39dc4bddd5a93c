package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/steps"
)

// Steps plays the steps of docs/steps.md, or lists them.
type Steps struct {
	Which       string // a number, "all", or empty: the list
	Out, Stderr io.Writer
}

const allSteps = "all"

// Validate refuses a step that there is not.
func (s *Steps) Validate() error {
	if s.Which == "" || s.Which == allSteps {
		return nil
	}
	if n, err := strconv.Atoi(s.Which); err != nil || n < 1 || n > len(steps.All()) {
		return &usageError{fmt.Errorf("step %q: it must be 1 to %d, or %s", s.Which, len(steps.All()), allSteps)}
	}
	return nil
}

// Run plays one step, or all of them. It returns nil only if each bug was seen, and each fix held.
func (s *Steps) Run(ctx context.Context) error {
	if err := s.Validate(); err != nil {
		return err
	}
	if s.Which == "" {
		s.list()
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c := steps.Config{Command: []string{self, stepProcessName}, Out: s.Out, Stderr: s.Stderr, Pause: stopSignal, Resume: continueSignal}
	if s.Which != allSteps {
		n, _ := strconv.Atoi(s.Which)
		return steps.Run(ctx, c, n)
	}
	var errs []error
	for n := range steps.All() {
		if n > 0 {
			fmt.Fprintf(s.Out, "\n\n")
		}
		if err := steps.Run(ctx, c, n+1); err != nil {
			errs = append(errs, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	if len(errs) == 0 {
		fmt.Fprintf(s.Out, "\n\nAll %d steps: each bug was seen, and holdfast held each time.\n", len(steps.All()))
	}
	return errors.Join(errs...)
}

// list prints a line for each step.
func (s *Steps) list() {
	for n, step := range steps.All() {
		fmt.Fprintf(s.Out, "%2d  %s\n", n+1, step.Title)
	}
	fmt.Fprintf(s.Out, "\nholdfast steps N plays a step, holdfast steps %s plays all.\n", allSteps)
}

func newSteps() *cobra.Command {
	s := &Steps{}
	cmd := &cobra.Command{
		Use:   "steps [N|" + allSteps + "]",
		Short: "See the locks of tutorials fail, and what holdfast does",
		Long: `List the steps, play step N, or play all.

A step is a lock as tutorials write it, from SETNX to RedLock, with the bug that is left in it. The
step starts real processes on a server inside this program, and prints with times how the bug
happens. Then it prints what happens in the same case with holdfast. Nothing but this program is
needed. A step takes at most 20 s.

The command ends with 0 only if the bug was seen, and did not happen with holdfast. docs/steps.md
explains each step.`,
		Args:      stepArgs,
		ValidArgs: stepNames(),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := interruptible(cmd.Context())
			defer cancel()
			s.Out, s.Stderr = cmd.OutOrStdout(), cmd.ErrOrStderr()
			if len(args) > 0 {
				s.Which = args[0]
			}
			return s.Run(ctx)
		},
	}
	return cmd
}

func stepArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return &usageError{fmt.Errorf("%s takes one step, got %q", cmd.CommandPath(), args)}
	}
	return nil
}

// stepNames are what completion offers.
func stepNames() []string {
	names := []string{allSteps}
	for n, step := range steps.All() {
		names = append(names, strconv.Itoa(n+1)+"\t"+step.Title)
	}
	return names
}
