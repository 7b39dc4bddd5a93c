// Package leased is for tests that lock under a lease, and have no work of their own to bind it to.
package leased

import (
	"context"

	"github.com/holdfast-go/holdfast"
)

// Context returns a context that ends with the lease alone.
func Context(lease *holdfast.Lease) context.Context {
	ctx, _ := lease.Bind(context.Background())
	return ctx
}
