package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/holdfast-go/holdfast"
)

// Exit codes, most of them from sysexits.h. A command that ran has its own.
const (
	exitFailed      = 1
	exitUsage       = 64
	exitNoServer    = 69 // no server, or it cannot serve
	exitBusy        = 75 // another holds the lock, or the wait was too long
	exitLost        = 76 // the lock was lost while the command ran
	exitDenied      = 77 // the server refuses this client
	exitEndangered  = 78 // doctor found what endangers a lock, or could not look
	exitNotRunnable = 126
	exitNotFound    = 127
	exitSignal      = 128 // plus the number of the signal
)

// A usageError is about the arguments.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// An exitError ends the program with a code. Without an err, nothing is printed.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// A signalError is a signal that came before the command ran.
type signalError struct{ signal os.Signal }

func (e *signalError) Error() string { return e.signal.String() }

// code is the exit code that a shell reports.
func (e *signalError) code() int {
	if n, ok := e.signal.(syscall.Signal); ok {
		return exitSignal + int(n)
	}
	return exitSignal + 2
}

func exitCode(err error) int {
	var (
		usage    *usageError
		exit     *exitError
		argument *holdfast.ArgumentError
		signaled *signalError
	)
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.code
	case errors.As(err, &usage), errors.As(err, &argument):
		return exitUsage
	case errors.As(err, &signaled):
		return signaled.code()
	}
	return exitFailed
}
