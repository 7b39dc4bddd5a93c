// Command holdfast shows what the library does, and lends its locks to programs that are not written in Go.
//
//	holdfast run NAME -- CMD ARGS...   a command under a lock
//	holdfast dev                       a server in memory, to try that without Redis
//	holdfast demo                      eight processes, one lock, and what can happen to its holder
//	holdfast quorum status             which masters of a quorum count, and why not
//	holdfast completion SHELL          completion for bash, zsh or fish
//	holdfast version                   what this is
//
// Each command is a file and a struct: the struct is the command without the flags, for tests and for other commands;
// the function beside it makes the cobra command that fills it. Exit codes are in exit.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

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
	var exit *exitError
	if said := errors.As(err, &exit) && exit.err == nil; err != nil && !said {
		text := trimmed(err.Error())
		if errors.As(err, new(*usageError)) {
			text = hidden(text, args)
		}
		fmt.Fprintf(errs, "holdfast: %s\n", text)
	}
	return exitCode(err)
}

// trimmed is a text without the name of the library, which says it too.
func trimmed(text string) string { return strings.TrimPrefix(text, "holdfast: ") }

// hidden is a text about the arguments without the URLs among them: one that stands where none
// belongs may hold a password.
func hidden(text string, args []string) string {
	for _, arg := range args {
		if at := strings.Index(arg, "://"); at >= 0 && at+3 < len(arg) {
			quoted := strconv.Quote(arg[at+1:])
			for _, form := range []string{arg[at+1:], quoted[1 : len(quoted)-1]} {
				text = strings.ReplaceAll(text, form, "//...")
			}
		}
	}
	return text
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}
