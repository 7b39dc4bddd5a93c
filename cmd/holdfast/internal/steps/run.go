package steps

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Limit is the most that a step takes.
const Limit = 20 * time.Second

// errLimit ends a step that takes too long. It leaves time to clean up.
var errLimit = errors.New("not at its end after 17s")

// ErrPause is the failure of a step on a system that cannot stop a process.
var ErrPause = errors.New("this step stops a process and continues it, and this system cannot do that")

// Run plays step number n, from 1, and prints what happens. It returns nil only if the bug was seen
// with the naive lock and not with holdfast. When it returns, nothing that it started is left.
func Run(ctx context.Context, c Config, n int) error {
	step := All()[n-1]
	step.describe(c.Out, n)
	if step.Pauses && c.Pause == nil {
		return fmt.Errorf("step %d: %w", n, ErrPause)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, Limit-3*time.Second, errLimit)
	defer cancel()
	fmt.Fprintf(c.Out, "\nThe naive lock (cmd/holdfast/internal/steps/naive/%s):\n\n", step.Source)
	bug, err := perform(ctx, c, step.naive)
	if err != nil {
		return fmt.Errorf("step %d, the naive lock, could not be judged: %w", n, err)
	}
	fmt.Fprintf(c.Out, "\n%s\n\nThe same with holdfast:\n\n", wrapped(bug.sentence("THE BUG IS SEEN", "THE BUG WAS NOT SEEN")))
	fix, err := perform(ctx, c, step.holdfast)
	if err != nil {
		return fmt.Errorf("step %d, holdfast, could not be judged: %w", n, err)
	}
	fmt.Fprintf(c.Out, "\n%s\n", wrapped(fix.sentence("IT HOLDS", "IT DID NOT HOLD")))
	fmt.Fprintf(c.Out, "\n%s\n\n    %s\n    (%s)\n", wrapped(step.Right.Why), step.Right.Code, step.Right.File)
	return judge(n, bug, fix)
}

// judge is the result of a step.
func judge(n int, bug, fix verdict) error {
	var errs []error
	if !bug.ok {
		errs = append(errs, fmt.Errorf("step %d: the bug was not seen: %s", n, bug.text))
	}
	if !fix.ok {
		errs = append(errs, fmt.Errorf("step %d: holdfast did not hold: %s", n, fix.text))
	}
	return errors.Join(errs...)
}

// perform plays once, and returns the verdict.
func perform(ctx context.Context, c Config, p play) (verdict, error) {
	s := newScene(ctx, c)
	judge := p(s)
	err := s.failure()
	s.end()
	s.timeline.finish()
	if err != nil {
		return verdict{}, err
	}
	return judge(), nil
}

// describe prints what a step is about.
func (s *Step) describe(out io.Writer, n int) {
	fmt.Fprintf(out, "Step %d of %d: %s\n\n%s\n\n", n, len(All()), s.Title, wrapped(s.Idea))
	for _, command := range s.Commands {
		fmt.Fprintf(out, "    %s\n", command)
	}
	fmt.Fprintf(out, "\n%s\n", wrapped("The bug that is left: "+s.Bug))
}

// wrapped is a text in lines of at most 78 columns.
func wrapped(text string) string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > 78 {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return strings.Join(append(lines, line), "\n")
}
