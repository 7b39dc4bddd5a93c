// Package holdfast is distributed locks on Redis and Valkey: several processes, on several hosts, that must not do the same
// thing at once. Exactly one does; the others wait in order; a holder that crashed is replaced; and a holder that can
// no longer be sure is told before anyone else can be let in.
//
//	client, err := holdfast.New(redisstore.New(rdb), nil)
//	...
//	err = client.Mutex("order:42").Do(ctx, func(ctx context.Context) error { return bill(ctx) })
//
// or, by hand:
//
//	lease, err := client.Mutex("order:42").Lock(ctx) // ctx bounds the wait
//	if err != nil {
//		return err
//	}
//	defer lease.Release(ctx)     // works although ctx is over
//	work(lease.Context())        // ends when the lease is lost; context.Cause says why
//	save(order, lease.Token())   // the fencing token
//
// # What holds
//
//   - Two leases of different owners that exclude each other are never trusted at one moment, as long as the server does not
//     forget, and the clocks of server and client run at rates that differ by less than one in a hundred. What time
//     they show does not matter, but the server's must not be set forward meanwhile.
//   - A lease is trusted until the moment its last confirmed request was sent, plus the TTL, less a margin (TTL/100 + 5 ms).
//     It is renewed every third of the TTL. When trust ends its context ends, with a *LostError as the cause, and nothing
//     brings it back.
//   - A holder that crashed is replaced when its TTL is over.
//   - Processes are served in the order in which they began to wait. Within a process a lock passes from goroutine to
//     goroutine, in order, for up to 5 ms before another process has its turn; WithStrictOrder makes every goroutine
//     stand in line itself.
//   - Readers share an RWMutex, a writer is alone, and no reader passes a writer that waits, but for those who enter the hold
//     of a process that reads already, within 5 ms of its grant. Holders of a Semaphore never have more permits together
//     than there are, as long as nobody takes permits away by Resize.
//   - The tokens of a name grow strictly, through release, expiry, hand-over, crash, restart of the server, a fail-over that
//     lost writes, and a server clock that steps back.
//   - Each request is sent once and may arrive late: one that its sender has given up takes no effect, or is undone.
//
// # What does not
//
//   - A lock cannot stop code. Between the end of trust and the moment at which the code looks at its context, what it
//     does is its own. Where that matters, let the storage refuse tokens that are smaller than the largest it has seen.
//   - A server that forgets (a restart without persistence, FLUSHALL, an operator's DEL) lets a second holder in, and both
//     hold until the first hears of it: by the answer to its next renewal, which is due a third of the TTL after the
//     last; without an answer, when its trust ends.
//   - A server whose clock is set forward ends holds early, with the same effect. One whose clock is set back ends them late.
//   - A fail-over to a replica that had not yet received the lock lets a second holder in, too. Both may hold until the first
//     one's client hears of the new master, as its connections to the old one end or the old one steps down: at the
//     longest until a renewal reaches the new one. An old master that was cut off and lives confirms renewals meanwhile, so
//     that may be several. Config.Replicas trusts only what replicas have confirmed; NewQuorum needs no replication.
//   - Tokens do not grow through two of these at one moment: lost data, and a server clock that steps back. The key that
//     remembers the largest token must not be written by others. If it holds a smaller number, what was given out before is
//     forgotten: the next token is the larger of that number plus one and the server's time in microseconds.
//   - After Mutex.Resume the old lease and the new one are trusted together, until the old process learns of it. Others are
//     kept out meanwhile.
//   - Goroutines that share a lease's context do not exclude each other: under it, locking the same name enters the hold.
//   - Processes with different prefixes, or on different servers or databases, know nothing of each other.
//
// # Options
//
// An option works alike wherever it has a meaning, and is refused with an *ArgumentError where it has none:
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
//
// # Errors
//
// What was refused says so: *ArgumentError before anything is sent, *HeldError (ErrHeld) when another holds, *WaitError
// when the context ended the waiting, *LostError (ErrLost) for a lease, *StoreError for a server that did not answer
// or refused, with whether the request was applied, and ErrUncertain for a release without an answer.
package holdfast
