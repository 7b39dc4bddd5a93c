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
// or, by hand:
//
//	lease, err := order.Lock(ctx)
//	if err != nil {
//		return err
//	}
//	defer lease.Release()          // works although ctx is over
//	ctx, cancel := lease.Bind(ctx) // ends with the request or with the lease, whichever is first
//	defer cancel()
//	if err := bill(ctx, 42); err != nil {
//		return err
//	}
//	return save(ctx, 42, lease.Token())
//
// # Waiting and working
//
// WithWait bounds the waiting of a call, and Config.Wait that of all calls of a client. When the
// time is over and another holds, the call returns a *WaitError that matches ErrHeld and
// ErrWaitOver. If no server answered, it matches ErrUnavailable alone. The ctx of Lock bounds the
// waiting, too. The ctx of Do bounds the waiting and the work together, so a deadline that is meant
// for the waiting would cut the work. TryLock does not wait. Its *HeldError names the holder, and
// says how long the hold lasts unless it is renewed. A holder that lives renews its lease, so that
// time does not say when the lock is free.
//
// Work runs under the context of Lease.Bind, which ends with the request or with the lease,
// whichever is first. context.Cause tells which: a loss is a *LostError. The bound
// context has the values and the deadline of the request. A caller that locks under it enters the
// holds of the lease, and the holds that the request's context has. The context that Do gives to
// its function is such a context.
//
// LeaseFrom returns the innermost lease that a context belongs to, and LeasesFrom returns all. So
// the function of Do has the fencing token, and code that it calls needs no argument for the lease.
//
// # Leases without renewal
//
// A lease WithoutRenewal ends with its TTL. Work that proves its progress calls Lease.Extend, which
// gives it another TTL from then on. So a holder that makes progress holds on, and one that hangs
// does not. A lease that is renewed lives as long as its process, even if its work hangs:
// WithMaxHold bounds that.
//
//	for _, row := range rows {
//		if err := copyRow(ctx, row); err != nil {
//			return err
//		}
//		if err := lease.Extend(ctx); err != nil {
//			return err
//		}
//	}
//
// # What holds
//
//   - Two leases of different owners that exclude each other are never trusted at one moment. This
//     needs a server that does not forget, and clocks of server and client whose rates differ by
//     less than one in a hundred. The time that the clocks show does not matter, but the server's
//     clock must not be set forward meanwhile.
//   - A lease is trusted until the moment its last confirmed request was sent, plus the TTL, less a
//     margin (TTL/100 + 5 ms). It is renewed every third of the TTL. When trust ends, the lease's
//     context ends, with a *LostError as the cause. Nothing brings the lease back.
//   - A holder that crashed is replaced when its TTL is over.
//   - Processes are served in the order in which they began to wait. Within a process, a lock
//     passes from goroutine to goroutine, in order, for up to 5 ms before another process has its
//     turn. WithStrictOrder makes every goroutine stand in the server's queue itself.
//   - Readers share an RWMutex, and a writer is alone. No reader passes a writer that waits, with
//     one exception: if a process reads already, its readers may enter its hold within 5 ms of its
//     grant. Holders of a Semaphore never have more permits together than there are, as long as no
//     caller takes permits away by Resize.
//   - The tokens of a name grow strictly. They grow through release, expiry, hand-over, crash,
//     restart of the server, a fail-over that lost writes, and a server clock that steps back.
//   - Each request is sent once and may arrive late. A request that its sender has given up takes
//     no effect, or is undone.
//
// # What does not
//
//   - A lock cannot stop code. Between the end of trust and the moment at which the code looks at
//     its context, the library has no influence on the code. Where that matters, let the storage
//     refuse tokens that are smaller than the largest it has seen.
//   - Client.ForceBreak and a DEL by hand, both an operator's, let a second holder in. No other
//     call does, if a ticket is attached once. A server that forgets (a restart without
//     persistence, FLUSHALL) does. Both hold until the first holder hears of the loss, by the
//     answer to its next renewal. That renewal is due a third of the TTL after the last. Without an
//     answer, the first holder stops when its trust ends.
//   - A server whose clock is set forward ends holds early, with the same effect. A server whose
//     clock is set back ends holds late.
//   - A fail-over to a replica that had not yet received the lock lets a second holder in, too.
//     Both may hold until the first holder's client hears of the new master, at the longest until a
//     renewal reaches the new master. The client hears of it when its connections to the old master
//     end, or the old master steps down. An old master that was cut off and lives still confirms
//     renewals meanwhile, possibly several. Config.Replicas trusts only what replicas have
//     confirmed. NewQuorum needs no replication.
//   - A lease does not live through an outage as long as its TTL. When an outage begins, two thirds
//     of the TTL are left at worst. So the TTL must be 1.6 times the outage, and 2 s more.
//     Otherwise the lease is lost, and its holder told.
//   - Tokens do not grow through two of these at one moment: lost data, and a server clock that
//     steps back. No other program may write the key that remembers the largest token. If the key
//     holds a smaller number, the tokens given out before are forgotten. The next token is then the
//     larger of two numbers: that number plus one, and the server's time in microseconds.
//   - Two processes that attach one Ticket, or wait with it, do not exclude each other. If one of
//     them releases its lease, other contenders get in. The other lease is then trusted until the
//     answer to its next renewal.
//   - Callers that wait for each other in a cycle wait for ever, or until their contexts end.
//     Client.All takes several names without that. WithDeadlockCheck ends one of the calls where it
//     sees a cycle: it says which cycles are not seen.
//   - Goroutines that share a lease's context do not exclude each other. A goroutine that locks the
//     same name under that context enters the hold.
//   - Processes with different prefixes, or on different servers or databases, know nothing of each
//     other.
//
// # Leases that leave their process
//
// Lease.Detach ends a lease here and returns it as a text, a Ticket. Client.Attach takes the ticket
// up, in whichever process: the same hold, with the same token. This is for work whose steps are
// processes of their own, such as the steps of a script. Between Detach and Attach nobody renews
// the hold, so the TTL must be longer than a step takes to start. Client.CheckTicket looks whether
// the hold of a ticket is there. Keep a ticket as you keep a password: a process that has the text,
// and access to the server, has the lock.
//
// Mutex.Ticket returns the ticket of a place in the queue, and Client.Attach waits there until
// the lock is held. The place is kept between the waits, for as long as Mutex.Ticket was told. So a
// script that waits for a short time again and again, each time in another process, need not join
// the end of the queue again. While no process waits at the place, all others pass it.
// Client.DiscardTicket gives the place back.
//
// # Looking at locks
//
// Client.Inspect tells who holds a name, since when and for how long, who waits for it, and what
// keeps others out. Client.Queue streams a long queue, and Client.List all names. They take nothing
// and write nothing, and a holder does not notice them. What they tell may be over when it arrives,
// so it is for people and for tools, and nothing may be decided by it.
//
// Client.Break ends a hold whose caller hangs. Nobody else gets in before that caller's code has
// stopped, or its TTL is over. Client.ForceBreak does not wait, and can bring two holders together.
// Client.Evict takes a waiter out of the queue, and Client.Deadlocks finds callers that wait for
// each other, where they lock WithDeadlockCheck.
//
// # Probes, metrics and other code
//
// Client.Ready is for readiness probes, and Election.Check for the liveness probe of a leader.
// Config.Observer receives events, of which metrics and traces are made. Mutex.Locker is a
// sync.Locker, for code that knows no other lock; its document says what such code gives up.
//
// # Options
//
// An option works alike wherever it has a meaning, and is refused with an *ArgumentError where it
// has none:
//
//	                  Mutex  RWMutex  Semaphore  Latch  Election  Group
//	WithTTL           yes    yes      yes        yes    yes       yes
//	WithoutRenewal    yes    yes      yes        -      yes       yes
//	WithMaxHold       yes    yes      yes        -      yes       yes
//	WithMinHold       yes    yes      yes        -      yes       yes
//	WithPolling       yes    yes      yes        -      yes       yes
//	WithOwner         yes    yes      -          -      -         yes
//	WithStrictOrder   yes    yes      yes        -      yes       yes
//	WithLabel         yes    yes      yes        -      yes       yes
//	WithWait          yes    yes      yes        yes    yes       yes
//	WithDeadlockCheck yes    yes      -          -      yes       yes
//
// # Errors
//
// The type of an error says why a call failed:
//
//   - An *ArgumentError means that an argument is bad. Nothing was sent, or nothing was changed.
//   - A *HeldError (ErrHeld) means that another contender holds the lock, or that a latch is set.
//   - A *WaitError means that a wait ended. Its Reason says by what: the context, the time of
//     WithWait (ErrHeld and ErrWaitOver, or ErrUnavailable), an operator who evicted the waiter, or
//     a deadlock.
//   - A *LostError (ErrLost) means that a lease was lost.
//   - A *TicketError (ErrTicket) means that a ticket cannot be attached, or waited with.
//   - A *StoreError means that the server did not answer, or refused. It says whether the request
//     was applied.
//   - A *QuorumError means that fewer masters of a quorum answered than a majority.
//   - ErrUncertain means that a release got no answer, or one that does not say whether the lease
//     was held until then.
package holdfast
