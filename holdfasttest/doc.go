// Package holdfasttest is for tests of code that uses holdfast. It has clients on a server inside
// the test, and leases that are lost when the test says so. It needs no Redis and no network, and
// takes milliseconds. Inside a bubble of testing/synctest it runs on the fake clock.
//
// New is for code that only needs a client. Method Lose of a server that Start returns ends a lease
// at once:
//
//	server := holdfasttest.Start(t)
//	client := server.Client(nil)
//	lease, err := client.Mutex("order:42").Lock(t.Context())
//	...
//	server.Lose(lease) // its context has ended; the cause is a *holdfast.LostError
//
// A server can also be silent (Silence) or slow (Slow), and its connections can break (Disconnect).
// Inside a bubble the consequences take no time. If a lease is lost with its TTL, the clock moves
// to that moment as soon as the test waits for it.
//
//	// export copies row after row while it holds the lock, and stops when the lock is lost.
//	func export(ctx context.Context, client *holdfast.Client, rows <-chan int, copied func(row int)) error {
//		return client.Mutex("export").Do(ctx, func(ctx context.Context) error {
//			for {
//				select {
//				case row, more := <-rows:
//					if !more {
//						return nil
//					}
//					copied(row)
//				case <-ctx.Done():
//					return context.Cause(ctx)
//				}
//			}
//		})
//	}
//
//	func TestExportStops(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			server := holdfasttest.Start(t)
//			rows, done := make(chan int), make(chan error)
//			copied := 0
//			go func() { done <- export(t.Context(), server.Client(nil), rows, func(int) { copied++ }) }()
//			rows <- 1
//			server.Silence() // the lock cannot be renewed
//			if err := <-done; !errors.Is(err, holdfast.ErrLost) || copied != 1 {
//				t.Errorf("it ended with %v after %d rows", err, copied)
//			}
//		})
//	}
//
// Orders finds deadlocks that a test does not run into. The test fails if it locks "b" under "a"
// and, anywhere else, "a" under "b":
//
//	client := server.Client(&holdfast.Config{Observer: holdfasttest.Orders(t)})
//
// A test that passes prints nothing but that: the connections that a server refuses are not logged
// by go-redis. Its logger, which all clients of a process share, stays as the user set it.
//
// The client, the scripts and the watchdog are the real ones. The server is miniredis, which keeps
// nothing and is much slower than Redis: measure nothing on it.
package holdfasttest
