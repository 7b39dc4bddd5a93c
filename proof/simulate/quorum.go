package simulate

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/lockinfo"
)

// foundQuorum begins the run's time when new masters count.
func (w *world) foundQuorum() error {
	if err := w.awaitCounting(); err != nil {
		return err
	}
	w.zero = time.Now()
	for _, r := range w.classes {
		r.idle = w.zero
	}
	return nil
}

// awaitCounting waits until all masters count.
func (w *world) awaitCounting() error {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); sleep(time.Second) {
		nodes, err := w.own.Quorum(context.Background())
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(nodes, func(n lockinfo.Master) bool { return !n.Counts }) {
			return nil
		}
	}
	return errors.New("simulate: the masters never counted")
}
