package waitover

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast"
)

func uses(ctx context.Context, m *holdfast.Mutex) error {
	lease, err := m.Lock(ctx)
	if errors.Is(err, holdfast.ErrWaitOver) { // want `ErrWaitOver says that the time is over, and not that another holds`
		return nil
	}
	if errors.Is(err, holdfast.ErrWaitOver) {
		return errors.Join(errors.New("no time"), err)
	}
	if errors.Is(err, holdfast.ErrWaitOver) && errors.Is(err, holdfast.ErrHeld) {
		return nil
	}
	if errors.Is(err, holdfast.ErrHeld) {
		return nil
	}
	return lease.Release()
}
