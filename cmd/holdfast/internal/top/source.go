package top

import (
	"context"
	"iter"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/snapshot"
	"github.com/holdfast-go/holdfast/lockinfo"
)

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
