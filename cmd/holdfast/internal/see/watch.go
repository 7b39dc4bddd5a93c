package see

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/snapshot"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// The limits of watch.
const (
	lookEvery  = time.Second
	mostFollow = 10_000
)

var streamFormats = []string{cli.FormatTable, cli.FormatLines}

// Watch tells what changes.
type Watch struct {
	cli.Connection
	cli.Output
	Pattern string
}

// Run looks once a second until ctx ends. If the first look fails, that is the end; a later failure
// is told, and so is the next look that succeeds.
func (w *Watch) Run(ctx context.Context) error {
	var c cli.Checklist
	cli.CheckPattern(&c, w.Pattern)
	c.Check(w.Format != cli.FormatJSON, "--output json: watch prints one document after another, which is jsonl")
	if w.Format != cli.FormatJSON {
		w.Output.Check(&c, streamFormats...)
	}
	client, end, err := w.Open(c, holdfast.Config{})
	if err != nil {
		return err
	}
	defer end()
	w.Note("looking every second: what lasts for less may not be seen")
	l := &watcher{Watch: w, client: client, follower: &snapshot.Follower{Limit: mostFollow}}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for first := true; ; first = false {
		if err := l.poll(ctx, first); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// A watcher is a Watch that runs.
type watcher struct {
	*Watch
	client   *holdfast.Client
	follower *snapshot.Follower
	away     bool // the last look failed
	full     bool // there were more names than are followed
}

// poll looks once. The error ends the watch.
func (l *watcher) poll(ctx context.Context, first bool) error {
	var unwritten error
	err := l.follower.Look(l.client.List(ctx, holdfast.ListOptions{Pattern: l.Pattern}), func(c lockinfo.Change) {
		if unwritten == nil {
			unwritten = l.printChange(c)
		}
	})
	switch {
	case unwritten != nil:
		return unwritten
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case err != nil && (first || isLasting(err)):
		return l.Failure(err)
	case err != nil && !l.away:
		l.Note("still looking: %s", show.Lines(cli.Trim(l.Failure(err).Error())))
	case err == nil && l.away:
		l.Note("the server is back")
	}
	l.away = err != nil
	if l.follower.Full && !l.full {
		l.full = true
		l.Note("more than %d names: only as many are followed, and a PATTERN chooses others", mostFollow)
	}
	return nil
}

// isLasting reports whether an error lasts until somebody changes something.
func isLasting(err error) bool { return !errors.Is(err, holdfast.ErrUnavailable) }

func (w *Watch) printChange(c lockinfo.Change) error {
	if w.Format == cli.FormatLines {
		return w.PrintDocument(c)
	}
	text, style := snapshot.Sentence(c)
	if w.Page().Colors {
		text = style.Styled(text)
	}
	_, err := fmt.Fprintf(w.Out, "%s  %s  %s\n", c.After.At.Local().Format(time.TimeOnly), show.Text(c.After.Name),
		text)
	return err
}

func newWatch() *cobra.Command {
	w := &Watch{}
	cmd := &cobra.Command{
		Use:                   "watch [PATTERN]",
		Short:                 "Tell who gets a lock, gives it back or waits, as it happens",
		DisableFlagsInUseLine: true,
		Args:                  cli.OnePattern(&w.Pattern),
		RunE:                  cli.UntilSignal(w.Run),
	}
	w.AddNameFlags(cmd)
	w.Output.AddFlags(cmd, streamFormats...)
	return cmd
}
