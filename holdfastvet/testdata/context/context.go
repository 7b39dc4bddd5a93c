package context

import (
	"context"

	"github.com/holdfast-go/holdfast"
)

func bill(ctx context.Context) error { return ctx.Err() }

func uses(ctx context.Context, m *holdfast.Mutex, e *holdfast.Election) error {
	_ = m.Do(ctx, func(held context.Context) error {
		if err := bill(ctx); err != nil { // want `ctx does not end when the lease is lost: use the context that Do gives`
			return err
		}
		return bill(context.Background()) // want `context.Background does not end when the lease is lost`
	})
	_ = e.Run(ctx, func(ctx context.Context) error {
		timed, cancel := context.WithTimeout(ctx, 1)
		defer cancel()
		return bill(timed)
	})
	return m.TryDo(ctx, func(held context.Context) error {
		_ = bill(context.WithoutCancel(ctx)) // it is said
		return bill(held)
	})
}
