package main

import (
	"context"
	"os"
	"os/signal"
)

// signals are what others tell us, for the command or instead of it.
type signals struct {
	heard chan os.Signal
	pipe  chan os.Signal
}

// listen takes over the signals that are passed on. One that is ignored stays so, for us and for the command: nohup, and the
// background jobs of a shell without job control, mean it.
func listen() *signals {
	s := &signals{heard: make(chan os.Signal, 64), pipe: make(chan os.Signal, 1)}
	s.again()
	// Else a line to a standard error that nobody reads any more would end us, and so the command.
	notify(s.pipe, brokenPipe)
	return s
}

// again listens to all, also to what was stopped being listened to.
func (s *signals) again() { notify(s.heard, append(passedOn, jobControl...)) }

func notify(to chan os.Signal, what []os.Signal) {
	for _, sig := range what {
		if !signal.Ignored(sig) {
			signal.Notify(to, sig)
		}
	}
}

// stop gives the signals back to the system.
func (s *signals) stop() {
	signal.Stop(s.heard)
	signal.Stop(s.pipe)
}

// end is a context that the next signal ends; the one after that ends us as if nobody listened. heard stops that and
// returns the *signalError of a signal that came.
func (s *signals) end(ctx context.Context) (_ context.Context, heard func() error) {
	ctx, cancel := context.WithCancelCause(ctx)
	for _, sig := range jobControl {
		signal.Reset(sig) // while we only wait, we stop like anybody
	}
	quit, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case sig := <-s.heard:
				if sig == continueSignal {
					continue
				}
				signal.Stop(s.heard)
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
			s.again()
		}
		return err
	}
}
