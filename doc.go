// Package holdfast provides distributed locks on Redis and Valkey, for several processes on several
// hosts that must not do the same thing at once. Exactly one process does it, and the others wait
// in order. A holder that crashes is replaced. A holder that can no longer be sure is told before
// any other contender can be let in.
//
//	client, err := holdfast.New(redisstore.New(rdb), nil)
//	...
//	order := client.Mutex("order:42", holdfast.WithWait(10*time.Second))
//	err = order.Do(ctx, func(ctx context.Context) error {
//		if err := bill(ctx, 42); err != nil { // nobody else bills order 42 now
//			return err
//		}
//		lease, _ := holdfast.LeaseFrom(ctx)
//		return save(ctx, 42, lease.Token()) // the fencing token
//	})
//
// Where the lock is not held for one function, [Mutex.Lock] returns a [Lease]. The work then runs
// under the context of [Lease.Bind], until [Lease.Release]. A context that Do or Bind made carries
// the lease: [LeaseFrom] returns it, and a caller that locks the same name under it enters the hold
// (a Semaphore is not entered). The other locks are [RWMutex], [Semaphore], [Group] and [Election].
// A [Latch] is a name at which processes wait until as many have counted down as were set.
//
// # What holds
//
//   - Two leases of different owners that exclude each other are never trusted at one moment. This
//     needs a server that does not forget, and clocks of server and client whose rates differ by
//     less than one in a hundred. The time that the clocks show does not matter, but the server's
//     clock must not be set forward meanwhile.
//   - A lease is trusted until the moment its last confirmed request was sent, plus the TTL, less a
//     margin (TTL/100 + 5 ms). It is renewed every third of the TTL. When trust ends, the contexts
//     of the lease end, with a [*LostError] as the cause. Nothing brings the lease back.
//   - A holder that crashed is replaced when its TTL is over, or up to 6 s after it was handed the
//     lock, if that is later.
//   - Processes are served in the order in which they began to wait. Within a process, a lock
//     passes from goroutine to goroutine, in order, for up to 5 ms before another process has its
//     turn. [WithStrictOrder] changes that.
//   - Readers share an RWMutex, and a writer is alone. Holders of a Semaphore never have more
//     permits together than there are, unless [Semaphore.Resize] takes permits away.
//   - The tokens of a name grow strictly: through release, expiry, hand-over, crash, restart of the
//     server, a fail-over that lost writes, and a server clock that steps back. Lost data and such
//     a step at one moment are the exception.
//   - Each request is sent once and may arrive late. A request that its sender has given up takes
//     no effect, or is undone.
//
// # What does not
//
//   - A lock cannot stop code. Between the end of trust and the moment at which the code looks at
//     its context, the library has no influence on it. Where that matters, let the storage refuse
//     tokens that are smaller than the largest it has seen.
//   - [Client.ForceBreak] and a DEL by hand, both an operator's, let a second holder in. No other
//     call does, if a ticket is attached once. The first holder hears of it by the answer to its
//     next renewal. Without an answer, it stops when its trust ends.
//   - A server that forgets (a restart without persistence, FLUSHALL) has the same effect. So has a
//     server whose clock is set forward: it ends holds early. One set back ends them late.
//   - A fail-over to a replica that had not yet received the lock lets a second holder in, too.
//     Both may hold until a renewal of the first reaches the new master. [Config.Replicas] trusts
//     only what replicas have confirmed, and [NewQuorum] needs no replication.
//   - A lease is lost in an outage that is too long for its TTL: see [Config.TTL].
//   - Callers that wait for each other in a cycle wait until their contexts end.
//     [Client.All] takes several names without that, and [WithDeadlockCheck] ends cycles.
//   - Goroutines that share a context of a lease do not exclude each other: each enters the hold.
//
// # Errors
//
// The type of an error says why a call failed. Each call may return an [*ArgumentError], ErrClosed,
// and a [*StoreError] if the server did not answer or refused. A client of a quorum may return a
// [*QuorumError], too. If ctx ended the call, the error matches that of ctx; where a lock was asked
// for, it is a [*WaitError]. These are the errors of every call. The methods name the others.
//
// # Where to read on
//
// [Config] and [Option] say what can be set. [Lease.Detach] and [Mutex.Ticket] are for work in
// several processes. [Client.Inspect], [Client.List] and [Client.Break] are for operators.
// [Client.Ready] and [Election.Check] are for probes, and [Config.Observer] for metrics and traces.
// Package flight has one process make a value that many wait for. Package shard spreads shards of
// work over all processes.
// The folder docs/ treats topologies, quorums, fencing, operations and moving from other libraries.
package holdfast
