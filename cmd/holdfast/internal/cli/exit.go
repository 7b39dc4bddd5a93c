package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/holdfast-go/holdfast"
)

// Exit codes, most of them from sysexits.h. A command that ran has its own.
const (
	ExitFailed      = 1
	ExitUsage       = 64
	ExitNoOutput    = 65 // what a command wrote is too large for others, or not there
	ExitNoServer    = 69 // no server, or it cannot serve
	ExitBusy        = 75 // another holds the lock, or the wait was too long
	ExitLost        = 76 // the lock was lost while the command ran
	ExitDenied      = 77 // the server refuses this client
	ExitEndangered  = 78 // doctor found what endangers a lock, or could not look
	ExitNotRunnable = 126
	ExitNotFound    = 127
	ExitSignal      = 128 // plus the number of the signal
)

// A UsageError is about the arguments.
type UsageError struct{ err error }

func (e *UsageError) Error() string { return e.err.Error() }
func (e *UsageError) Unwrap() error { return e.err }

// An ExitError ends the program with a code. Without an Err, nothing is printed.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

// Usage returns an error about the arguments.
func Usage(err error) error { return &UsageError{err} }

// Usagef is Usage with a text.
func Usagef(format string, args ...any) error { return Usage(fmt.Errorf(format, args...)) }

// Exit returns an error that ends the program with a code, and prints nothing.
func Exit(code int) error { return &ExitError{Code: code} }

// ExitWith returns an error that ends the program with a code, after its text.
func ExitWith(code int, err error) error { return &ExitError{code, err} }

// Exitf is ExitWith with a text.
func Exitf(code int, format string, args ...any) error {
	return ExitWith(code, fmt.Errorf(format, args...))
}

// A SignalError is a signal that came before the command ran.
type SignalError struct{ Signal os.Signal }

func (e *SignalError) Error() string { return e.Signal.String() }

// Code returns the exit code that a shell reports.
func (e *SignalError) Code() int {
	if n, ok := e.Signal.(syscall.Signal); ok {
		return ExitSignal + int(n)
	}
	return ExitSignal + 2
}

// ExitCode returns the exit code of the program that ends with err.
func ExitCode(err error) int {
	var (
		usage    *UsageError
		exit     *ExitError
		argument *holdfast.ArgumentError
		signaled *SignalError
	)
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.Code
	case errors.As(err, &usage), errors.As(err, &argument):
		return ExitUsage
	case errors.As(err, &signaled):
		return signaled.Code()
	}
	return ExitFailed
}

// Trim is a text without the name of the library, which begins each of its errors.
func Trim(text string) string {
	return strings.ReplaceAll(strings.TrimPrefix(text, "holdfast: "), ": holdfast: ", ": ")
}
