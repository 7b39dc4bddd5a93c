// Command steps shows, step by step, how the distributed locks of the tutorials fail, and what
// holdfast does in the same case. docs/steps.md is its text:
//
//	go run ./examples/steps       # lists the steps
//	go run ./examples/steps 3     # plays one
//	go run ./examples/steps all   # plays all
//
// The output is in Chinese with --lang zh, or if LANG says so.
//
// A step is one lock of the tutorials with the bug that is left in it. Package naive has these
// locks, one in a file, as tutorials write them. A step is played twice: with the naive lock, where
// the bug must be seen to happen, and with holdfast, where it must not. Both plays have the same
// fault. The program ends with 0 only if each bug was seen and each fix held.
//
// A play is a story of stories.txt, line by line, or a function. It directs a scene, which has
// nodes, networks and processes:
//
//   - A node is a server in the memory of the parent process, on a free loopback port. So a step
//     needs nothing but this program, and is the same everywhere.
//   - A network is a proxy between one process and one node, of package fault.
//   - A process is a child process: this program again. It has one lock, takes orders on its
//     standard input and reports on its standard output, in JSON. While it is inside the lock it
//     works: every few milliseconds it asks its lock whether it may go on, and stops when the lock
//     says no. A naive lock rarely knows.
//
// Faults are injected, never hoped for: the play waits for an event, such as a request that a
// network holds back, and does the next thing then. No play depends on which of two processes is
// faster.
//
// A verdict is computed from the reports. A tenure is the time from a process's entry until the
// last time at which its lock let it work, by the wall clock, which all processes of one host
// share. Two processes were inside together if their tenures overlap.
//
// All that a step started is gone when it ends. A child process ends with its standard input,
// however the parent ends; an interrupt is left to the parent.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// childArg makes this program one process of a step.
const childArg = "process-of-a-step"

// limit is the most that a step takes.
const limit = 20 * time.Second

func main() {
	log.SetFlags(0)
	if len(os.Args) == 2 && os.Args[1] == childArg {
		signal.Notify(make(chan os.Signal, 1), os.Interrupt) // the parent decides what follows
		if err := act(context.Background(), os.Stdin, os.Stdout); err != nil {
			log.Fatal(err)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

// run lists the steps, plays one, or plays all.
func run(ctx context.Context, args []string, getenv func(string) string, out io.Writer) error {
	flags := flag.NewFlagSet("steps", flag.ContinueOnError)
	flags.SetOutput(out)
	lang := flags.String("lang", "", "the language of the output, en or zh (default that of LANG)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch args = flags.Args(); *lang {
	case "":
		inChinese = wantsChinese(getenv)
	case "en", "zh":
		inChinese = *lang == "zh"
	default:
		return fmt.Errorf("language %q: it must be en or zh", *lang)
	}
	if len(args) == 0 {
		for n, step := range steps {
			fmt.Fprintf(out, "%2d  %s\n", n+1, step.title.text())
		}
		fmt.Fprintln(out, "\n"+text("steps N plays a step, and steps all plays all."))
		return nil
	}
	if len(args) == 1 && args[0] == "all" {
		var errs []error
		for n := range steps {
			if ctx.Err() == nil {
				errs = append(errs, playStep(ctx, out, n+1))
			}
		}
		return errors.Join(errs...)
	}
	n, err := strconv.Atoi(args[0])
	if err != nil || len(args) > 1 || n < 1 || n > len(steps) {
		return fmt.Errorf("step %q: it must be 1 to %d, or all", args, len(steps))
	}
	return playStep(ctx, out, n)
}

// playStep plays step number n, from 1, and prints what happens. It returns nil only if the bug was
// seen with the naive lock and not with holdfast.
func playStep(ctx context.Context, out io.Writer, n int) error {
	step := steps[n-1]
	ctx, cancel := context.WithTimeoutCause(ctx, limit-3*time.Second, errors.New("not at its end after 17s"))
	defer cancel()
	fmt.Fprintf(out, text("Step %d of %d: %s (docs/steps.md explains it)")+"\n", n, len(steps), step.title.text())
	var errs []error
	for _, part := range []struct {
		heading, met, missed string
		play                 play
	}{
		{fmt.Sprintf(text("The naive lock (examples/steps/naive/%s)"), step.source), text("THE BUG IS SEEN"),
			text("THE BUG WAS NOT SEEN"), step.naive.play},
		{text("The same with holdfast"), text("IT HOLDS"), text("IT DID NOT HOLD"), step.holdfast.play},
	} {
		fmt.Fprintf(out, "\n"+text("%s:")+"\n\n", part.heading)
		v, err := perform(ctx, out, part.play)
		if err != nil {
			return fmt.Errorf("step %d, %s, could not be judged: %w", n, part.heading, err)
		}
		said := part.met
		if !v.ok {
			said = part.missed
			errs = append(errs, fmt.Errorf("step %d: %s: %s", n, said, v.text))
		}
		fmt.Fprintf(out, "\n"+text("%s: %s.")+"\n", said, v.text)
	}
	fmt.Fprintln(out)
	return errors.Join(errs...)
}
