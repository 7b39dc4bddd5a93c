// Package promholdfast tells Prometheus what happens to locks: an Observer for the locks of this
// process, and a Collector for those of all processes.
//
//	observer := promholdfast.NewObserver()
//	prometheus.MustRegister(observer)
//	client, err := holdfast.New(store, &holdfast.Config{Observer: observer})
//
// # The locks of this process
//
//	holdfast_wait_seconds              histogram  from the call to its end; by outcome and contended
//	holdfast_hold_seconds              histogram  from the beginning of a lease to its end
//	holdfast_acquisitions_total        counter    calls that ended; by outcome and contended
//	holdfast_holds                     gauge      leases that this process has now
//	holdfast_waiters                   gauge      callers in this process that wait now
//	holdfast_losses_total              counter    leases that were lost; by reason
//	holdfast_renewal_headroom_seconds  histogram  how much trust was left, of a TTL, when a renewal was confirmed
//	holdfast_retries_total             counter    requests of waiters and renewals that failed and are tried again
//	holdfast_recall_seconds            histogram  in which a retained lock that nobody used went to another process
//	holdfast_server_requests_total     counter    requests that were sent to a server; by op and outcome
//
// All but the last have the labels kind (mutex, rwmutex, semaphore, election or latch) and class,
// which holdfast.Config.Class makes of the name, and which is empty without it. The outcomes are
// those of holdfast.Event.Outcome, and the reasons those of holdfast.Reason.Code. The labels of
// requests are the fields of a telemetry.Request. The name of a lock is no label: 10,000 names
// would make 10,000 series. A group has the figures of each of its names. An Observer that calls
// this one must be a telemetry.RequestObserver too, or no requests are counted: holdfast.Observers
// makes such a one.
//
// # The locks of all processes
//
// A Collector asks the server when it is scraped:
//
//	prometheus.MustRegister(promholdfast.NewCollector(client, nil))
//
//	holdfast_names                     gauge  names that are held, waited for, or latches
//	holdfast_held_names                gauge  those that are held
//	holdfast_queued_waiters            gauge  waiters in the queues of the server
//	holdfast_longest_queue             gauge  the most waiters of one name
//	holdfast_oldest_hold_seconds       gauge  age of the oldest hold
//	holdfast_longest_wait_seconds      gauge  how long the waiter that waits for longest has waited
//	holdfast_late_holds                gauge  holds whose renewal is late by more than half a TTL
//	holdfast_worst_wait_seconds        gauge  the longest wait for a name, of the names with the longest
//	holdfast_list_success              gauge  1 if the last listing was complete, 0 if it failed
//	holdfast_list_seconds              gauge  how long it took
//
// The worst names are told with CollectorOptions.Worst alone, at most ten at a time. Over time they
// may be many.
//
// Register it in one process, not in all: each listing reads all keys of the server by SCAN, with
// one more request for each name. CollectorOptions bound how often and how long. When a listing
// fails, only the last two figures are told, as old figures would be taken for new ones. Waiters
// stand in the server's queue once for each process. A quorum has no queue.
//
// # Shards
//
// A ShardCollector has the figures of each shard.Set, in each process that calls Run:
//
//	prometheus.MustRegister(promholdfast.NewShardCollector(set))
//
//	holdfast_shards                    gauge    shards of the set, in all processes
//	holdfast_shards_held               gauge    shards that this process has
//	holdfast_shards_taken_total        counter  leases of shards that this process got
//	holdfast_shards_given_back_total   counter  those that it gave back
//	holdfast_shards_lost_total         counter  those that it lost
//
// The label set is the name of the set. It sends nothing. So many shards have no owner:
//
//	max by (set) (holdfast_shards) - sum by (set) (holdfast_shards_held)
package promholdfast
