// Package flight lets one process make a value that many need at once, while the others wait and
// use what it stored. It is for what is dear to make and kept in a storage that all share: a token
// of OAuth, a cache entry, a report, a file. It is known as protection against a cache stampede (a
// thundering herd, dog-piling).
//
//	rate, err := flight.Do(ctx, client, "rate:EUR",
//		func(ctx context.Context) (Rate, flight.State, error) { // look into the storage
//			rate, err := load(ctx, "EUR")
//			return rate, flight.StateOf(rate.Expires, time.Minute), err
//		},
//		func(ctx context.Context, token int64) (Rate, error) { // make it and store it
//			rate, err := ask(ctx, "EUR")
//			if err != nil {
//				return rate, err
//			}
//			return rate, store(ctx, "EUR", rate, token)
//		})
//
// The storage is the caller's, and only read and compute know it. The package keeps nothing at the
// server but the lock: an RWMutex of the client, with the name of the call.
//
// # A call
//
//	READING ---> DONE       the value is fresh, or read failed
//	        ---> ASKING     it is stale: the call asks once for the lock, to write
//	ASKING  ---> LEADING    it is free
//	        ---> WAITING    others have it
//	WAITING ---> READING    as a reader: all are let in together
//	        ---> LEADING    as a writer, after it waited as a reader: one by one, in order
//	LEADING ---> DONE       it read again, and computed if the value was stale still
//	        ---> READING    its lease was lost
//
// A call reads. If the value is fresh, that is all: no request is sent. If it is stale, the call
// asks once for the lock, to write. If it gets it, it leads: it reads again, as another may have
// stored meanwhile. It computes if the value is stale still.
//
// If others have the lock, the call waits as a reader. When the leader releases the lock, one
// hand-over lets all readers in together. Each gives the lock back before anything else, and reads.
//
// If the value is stale then, the leader died, failed or lost its lease. Exactly one computes next,
// after it has read again. As readers still in keep writers out, the calls do not try in turns:
// each asks once more. If it does not get the lock, it waits, and behind a writer it is a reader
// again. The third wait, and a second one with nobody before it, is that of a writer. Those are let
// in one by one, in order, and each reads again. So no call is passed over for ever, and none tries
// in a loop. Callers of one process share a call, so the queue has one place for each process.
//
// # Who owns what
//
//   - The lock belongs to the call that leads, while compute runs. The ctx of compute carries its
//     lease ([holdfast.LeaseFrom]), and ends when the lease is lost. The token is its fencing
//     token.
//   - Callers of one name at one client, for values of one type, share one call from its first read
//     to its end, also while no server answers. It uses read, compute and options of its first
//     caller, and the values of that caller's context. All get the same value: a caller that
//     changes it copies it before.
//   - A caller that joins gets what the call reads or has read, also if that was before it came.
//   - The shared call has no deadline. A caller whose ctx ends leaves, with a
//     *[holdfast.WaitError], and the others wait on. When the last has left, the context of read
//     and compute ends. A caller that comes then begins another call, which waits for the lock.
//   - A refresh ahead is a call of its own. It belongs to nobody, and ends with the client.
//
// # What happens on failure
//
//	read fails           its error ends the call; compute is not called
//	compute fails        its error goes to the callers of this call. The next call tries: one of
//	                     those that wait, or any that comes. WithSharedErrors changes that
//	                     for the callers of this process. Between processes no error is shared.
//	                     If it should be, compute stores it, and read returns it
//	read or compute      the lock is given back, and all callers of the call panic with an error
//	panics               that has the value and its stack. If none is left, or it was a refresh
//	                     ahead, the panic ends the program, as in any goroutine
//	the leader dies      its lock is over with its TTL; one of those that wait computes next
//	its lease is lost    the ctx of compute ends, with the *LostError as its cause. What compute
//	                     returns is not used. The call begins anew: it reads, and waits for the
//	                     next leader or is it. If it loses a second lease, it returns the error of
//	                     compute, if any, and the *LostError. A lease that may have been lost
//	                     (ErrUncertain) counts as lost
//	the server is away   the call goes on asking, as Lock does. ctx and WithWait bound that.
//	                     WithFailOpen computes without the lock
//	the name is of       the error is the *StoreError of the lock, of kind StoreForeign
//	another kind
//	compute asks for     an *ArgumentError, as the call would wait for itself
//	its own name
//
// At every moment at most one compute of a name runs under a lease that is trusted. A leader that
// stands still may write later, when another leads. Where that matters, the storage keeps the
// largest token that it has seen and refuses smaller ones.
//
// # Refresh ahead
//
// If read says [RefreshAhead], the value is used at once, and one process makes the next one in the
// background. The other processes wait for it in the background as well, each with one call, and
// use the value that is there. If the refresh fails, no caller is told while the value is fresh. A
// call that comes a second later, or later, tries again.
package flight
