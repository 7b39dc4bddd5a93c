// Package otelholdfast tells OpenTelemetry what happens to locks: metrics of all, and a span for
// each contended wait. It uses the API of OpenTelemetry alone. The SDK that the program sets up
// decides what becomes of the figures.
//
//	observer, err := otelholdfast.New(nil)
//	...
//	client, err := holdfast.New(store, &holdfast.Config{Observer: observer})
//
// # Metrics
//
//	lock.wait_time         histogram, s   from the call to its end; by outcome and contended
//	lock.hold_time         histogram, s   from the beginning of a lease to its end
//	lock.acquisitions      counter        calls that ended; by outcome and contended
//	lock.holds             up-down        leases that this process has now
//	lock.waiters           up-down        callers in this process that wait now
//	lock.losses            counter        leases that were lost; by reason
//	lock.renewal.headroom  histogram, s   how much trust was left, of a TTL, when a renewal was confirmed
//	lock.retries           counter        requests of waiters and renewals that failed and are tried again
//	lock.recall_time       histogram      in which a retained lock that nobody used went to another process
//	lock.server.requests   counter        requests that were sent to a server; by request and outcome
//
// The boundaries of the histograms begin at 0.1 ms. Attributes are:
//
//	lock.kind         mutex, rwmutex, semaphore, election or latch
//	lock.class        what holdfast.Config.Class makes of the name; absent if that is empty
//	lock.outcome      as holdfast.Event.Outcome
//	lock.contended    whether the caller had to wait
//	lock.loss.reason  as holdfast.Reason.Code
//
// Requests have two others alone:
//
//	lock.request          what it was for, as telemetry.Request.Op
//	lock.request.outcome  as telemetry.RequestOutcome
//
// The name of a lock is never an attribute of a metric: 10,000 names would make 10,000 series.
//
// A group has the figures of each of its names.
//
// ObserveShards adds the figures of each shard.Set, with its name as lock.set. So many shards have
// no owner: lock.shards without the sum of lock.shards.held over all processes.
//
//	lock.shards             up-down  shards of the set, in all processes
//	lock.shards.held        up-down  shards that this process has
//	lock.shards.taken       counter  leases of shards that this process got
//	lock.shards.given_back  counter  those that it gave back
//	lock.shards.lost        counter  those that it lost
//
// # Spans
//
// A call that had to wait gets the span "lock.wait", a child of the caller's span. It lasts from
// the call to its end. It has the attributes above and lock.name, the lock.token of the lease, and
// the lock.holder that the caller was last told of, with its lock.holder.token. The end of a wait
// without a lease is an error of the span. A call that is granted at once has no span.
//
// The span links to the span of that holder, if its client has this Observer too. The request for a
// hold carries the W3C traceparent of its caller to the server, 55 bytes for each hold and waiter,
// and the answer tells a waiter that of the holder. When a process passes a hold on, the waiter
// links to the goroutine that had it. The server has the traceparent of the goroutine that asked
// it. A client may write anything to the server: a text that is no traceparent makes no link. An
// Observer of a program that calls this one must be a telemetry.Tracer too, or there are no links;
// and a telemetry.RequestObserver, or no requests are counted. holdfast.Observers makes such a one.
//
// The caller's own span gets the events "lock.acquired" and "lock.released". A lost lease is the
// event "lock.lost", with the error, and makes the caller's span an error. Nothing is added to a
// span that has ended by then.
package otelholdfast
