// Package top shows locks on a full screen, and keeps showing them: from servers, once a second, or
// from a capture.
//
// The screen is a Model of bubbletea: Update changes its state by a message, and View draws the
// state. Whatever takes time is a command of bubbletea, whose result is a message again. So the
// screen goes on while a server is silent.
package top

import (
	"context"
	"iter"
	"os"

	tea "charm.land/bubbletea/v2"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/snapshot"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// Run shows a Model on a terminal until the user leaves, or ctx ends.
func Run(ctx context.Context, c Config, in, out *os.File) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends a look that is under way
	program := tea.NewProgram(New(ctx, c), tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler())
	stop := context.AfterFunc(ctx, program.Quit)
	defer stop()
	_, err := program.Run()
	return err
}

// A Server is where locks are looked at and acted on: a *holdfast.Client.
type Server interface {
	List(ctx context.Context, options holdfast.ListOptions) iter.Seq2[lockinfo.Info, error]
	Inspect(ctx context.Context, name string) (lockinfo.Info, error)
	Break(ctx context.Context, name string, token int64) error
}

// A Recorder stores each look: a *snapshot.Writer.
type Recorder interface {
	Add(s snapshot.Snapshot) error
}

// A Recording is looks that were stored: a *snapshot.Capture.
type Recording interface {
	Len() int
	At(i int) snapshot.Snapshot
}
