// Package moving is the code of docs/moving.md: how a service leaves another lock library without a
// window in which both libraries let a process in. The module is one of its own: nobody else needs
// these libraries.
//
// Each Under function runs work under a lock of the old library, as long as that lock lives. A
// release that only knows the old library locks by itself, as it always did. The release after it
// nests the two:
//
//	err := client.Mutex("order:42").Do(ctx, func(ctx context.Context) error {
//		return moving.UnderRedsync(ctx, old, "order:42", 8*time.Second, bill)
//	})
//
// The release after that has client.Mutex("order:42").Do(ctx, bill).
package moving
