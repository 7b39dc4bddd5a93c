package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// endSignals ask a program to end. HUP may also ask it to read its configuration.
var endSignals = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT}

// signals are the signals to this process that are meant for the command, or for the wait before.
type signals struct{ received chan os.Signal }

// listen takes over the signals that are passed on. An ignored signal stays ignored, for this
// process and for the command: nohup, and the background jobs of a shell without job control,
// rely on that.
func listen() *signals {
	s := &signals{received: make(chan os.Signal, 64)}
	s.listenAgain()
	outliveReaders() // a notice that nobody reads must not end this process, and so the command
	return s
}

// listenAgain listens to all signals, also to those that were reset.
func (s *signals) listenAgain() { notify(s.received, append(passedOn, jobControl...)) }

func notify(to chan os.Signal, list []os.Signal) {
	for _, sig := range list {
		if !signal.Ignored(sig) {
			signal.Notify(to, sig)
		}
	}
}

// stop restores the default effect of the signals.
func (s *signals) stop() { signal.Stop(s.received) }

// outliveReaders lets a write to a pipe without a reader fail. Otherwise it ends this process. That
// is right for a command that only shows, and not for one that would leave a lock behind, or whose
// exit code tells more than its text. It cannot be undone.
func outliveReaders() { notify(make(chan os.Signal, 1), brokenPipe) }

// cancelOnSignal returns a context that the next signal ends. The signal after that has its default
// effect. stop ends this, and returns a *signalError if a signal came.
func (s *signals) cancelOnSignal(ctx context.Context) (_ context.Context, stop func() error) {
	ctx, cancel := context.WithCancelCause(ctx)
	for _, sig := range jobControl {
		signal.Reset(sig) // a process that only waits can be stopped like any other
	}
	quit, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case sig := <-s.received:
				if sig == continueSignal {
					continue
				}
				signal.Stop(s.received)
				err := &signalError{sig}
				cancel(err)
				done <- err
			case <-quit:
				done <- nil
			}
			return
		}
	}()
	return ctx, func() error {
		close(quit)
		err := <-done
		cancel(nil)
		if err == nil {
			s.listenAgain()
		}
		return err
	}
}
