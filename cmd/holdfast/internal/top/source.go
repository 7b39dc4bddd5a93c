package top

import (
	"context"
	"iter"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/snapshot"
)

// A Server is where locks are looked at and acted on: a *holdfast.Client.
type Server interface {
	List(ctx context.Context, options holdfast.ListOptions) iter.Seq2[holdfast.LockInfo, error]
	Inspect(ctx context.Context, name string) (holdfast.LockInfo, error)
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
