// Command holdfast shows what the library does, and lends its locks to programs that are not written in Go.
//
//	holdfast demo      eight processes, one lock, one of them killed while it holds
//	holdfast version   what this is
//
// Each command is a file and a struct: the struct is the command without the flags, for tests and for other commands;
// the function beside it makes the cobra command that fills it. Exit codes: 0, 1 if it failed, 64 if it was not
// understood, 130 if it was interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/redis/go-redis/v9"
)

func main() {
	redis.SetLogger(silence{}) // what fails is reported; a line for each attempt to connect hides it
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole program but for the process around it.
func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintf(errs, "holdfast: %v\n", err)
	}
	return exitCode(err)
}

func exitCode(err error) int {
	var usage *usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		return 64
	case errors.Is(err, errInterrupted):
		return 130
	}
	return 1
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}
