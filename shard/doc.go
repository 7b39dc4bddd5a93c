// Package shard spreads n leases of one name over all processes that take part. Each shard has one
// owner at any moment, and each process has its fair share. It is for work that is divided by key:
// the partitions of a stream, the tenants of a service, the ranges of a table.
//
//	set := shard.New(client, "orders", 64)
//	err := set.Run(ctx, func(ctx context.Context, i int) error { // one call for each shard held here
//		return consume(ctx, i) // until ctx ends
//	})
//	if err != nil && !errors.Is(err, context.Canceled) { // else the process was told to stop
//		return err
//	}
//
// [Set.Of] says which shard a key belongs to. No process coordinates the others. The servers are
// those of the client: one server, Sentinel or a cluster. A quorum has no queue and is refused.
//
// # What is at the server
//
//	NAME        an RWMutex. Each process that takes part, a member, holds it to read
//	NAME/I      a Mutex for each shard, from 0: NAME/0, NAME/1 and so on
//
// The owner of these holds (lockinfo.Hold.Owner) begins with "shard N WEIGHT ID", which names the
// member. Client.Inspect, the command and the dashboard show which process has which shard, as of
// any lock. The number of shards belongs to the name while any process takes part.
//
// # The states of a shard in a process
//
//	ABSENT  ---> TAKING   the plan of the process names the shard
//	TAKING  ---> RUNNING  its lease is held: the function runs
//	        ---> ABSENT   another process has it, and need not give it back
//	RUNNING ---> ENDING   the context of the function has ended: the shard is to move, its lease
//	                      was lost, or Run ends
//	        ---> ABSENT   the function returned: the shard was released
//	ENDING  ---> ABSENT   the function returned, and then the shard was released
//
// A shard is released only after its function has returned. So the next owner starts behind the
// last one, unless the lease was lost. The fencing token of the lease is for that case.
//
// # Fair shares
//
// A process of weight w has n*w/W shards, rounded down or up, where W is the sum of all weights.
// Those that have more already round up first, then those of the largest fraction, then the
// youngest. So a share changes only when the members do.
//
// A process below its share makes a plan. It reads who holds each shard, and takes those that
// nobody holds, or that a process holds that is no member any more. If those are too few, it waits
// in the queue of shards of processes above their share. The holder hears of it (Lease.Wanted). If
// it has more than its share rounded down, it gives back the shards that are wanted, one at a time.
// If it has more than its share for a third of the TTL, and gives back none, it has the others look
// again: they may have planned before it got the last of them.
//
// The shards of the process that left last are given back first, so a process that comes back gets
// the shards that it had. Each hold says how often its shard has moved lately, which is within an
// hour, and those that moved twice are given last. So a restart of all processes, one by one, moves
// each shard at most twice, unless they moved in the hour before.
//
// # What happens when
//
//	a process joins      it pulls its share from the others, one shard of each at a time
//	Run ends             the process gives up its membership and tells the others, which queue for
//	                     its shards. Its functions end, and each shard is released as its function
//	                     returns
//	a process dies       its membership and its shards are over with its TTL. The others know when,
//	                     look at that moment, and take them
//	a process stands     the same. When it goes on, the contexts of its functions end, and it joins
//	still                anew
//	a lease is lost      the context of the function ends with the *holdfast.LostError as its cause.
//	                     The process plans again
//	the function         the shard is released, and no plan of this process names it for a second
//	returns nil
//	the function fails   Run ends with its error, after all other functions have returned. An error
//	                     that matches context.Canceled, ErrMoved or holdfast.ErrLost, after its
//	                     context has ended, is none
//	the function panics  Run ends as after an error, and then panics with the value and its stack
//	the function goes    the shard stays where it is, and nobody else starts. WithLogger tells it
//	on after its
//	context has ended
//	a process has        it gets an *holdfast.ArgumentError with both numbers, if the others came
//	another n            before it
//	the server is away   leases are lost when their trust is over; Run goes on asking
//
// # What it costs
//
// A process renews its membership as it renews a shard. In each third of the TTL it reads the list
// of members, with one request. When the members change, each process below its share rounded up
// reads all n shards. At most 100 processes can take part.
package shard
