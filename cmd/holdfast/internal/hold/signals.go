package hold

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
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
	cli.OutliveReaders() // a notice that nobody reads must not end this process, and so the command
	return s
}

// listenAgain listens to all signals, also to those that were reset.
func (s *signals) listenAgain() { cli.Notify(s.received, append(passedOn, jobControl...)) }

// stop restores the default effect of the signals.
func (s *signals) stop() { signal.Stop(s.received) }

// cancelOnSignal returns a context that the next signal ends. The signal after that has its default
// effect. stop ends this, and returns a *cli.SignalError if a signal came.
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
				if sig == cli.ContinueSignal {
					continue
				}
				signal.Stop(s.received)
				err := &cli.SignalError{Signal: sig}
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

// interrupt calls acquire with a context that the next signal ends. A lease that it got all the
// same is given back then, and the error is a *cli.SignalError.
func (s *signals) interrupt(
	ctx context.Context, acquire func(context.Context) (*holdfast.Lease, error),
) (*holdfast.Lease, error) {
	ctx, stop := s.cancelOnSignal(ctx)
	lease, err := acquire(ctx)
	if ended := stop(); ended != nil {
		if lease != nil {
			_ = lease.Release()
		}
		return nil, ended
	}
	return lease, err
}
