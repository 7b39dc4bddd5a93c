// Package explore searches small worlds: a few callers, a name or two, the protocol in memory, and
// a model of what a caller trusts. It visits every state that these can reach, whatever is lost,
// late or slow, and judges each. Package proof/model compares the protocol in memory with the
// scripts, so that what holds here holds there.
//
// # A state
//
//	server    the protocol in memory, itself: holds, remainders, places, evictions, a latch
//	caller    a phase, its ticket, the end of its trust, until when an ask without an answer may
//	          take effect, the message of a hand-over, and a request under way
//	network   requests that are late: each arrives at any later moment, or never
//
// Time passes in ticks, on one clock. A caller begins anew for ever, with a new ticket each time.
// Yet there are finitely many states, as all times count from now, and what is over is over. A
// ticket is named by its caller. Two callers that are alike change places for nothing. So most
// worlds are searched to their end: then there is no other state, and no longer story.
//
// # What can happen
//
//	a tick passes
//	a caller  asks, asks again, hears of a hand-over, renews, releases, gives up, gives back what it
//	          gave up, yields, downgrades, detaches and attaches, waits at a kept place and leaves it,
//	          retains its hold unused and enters it again, hears that another asks for it, asks for a
//	          group, crashes
//	a request is answered; arrives, and its answer is lost; is lost; is late; in a slow world it or
//	          its answer may take until the next tick
//	operator  breaks a hold, evicts a place, sets the permits
//
// A caller trusts a hold until the sending of the last confirmed request + TTL, and a hand-over
// until its claim after the grant, as package engine says. The margin is 0, as there is one clock.
// A request that is late may have arrived before as well: a caller that had no answer asks again,
// with the same ticket. A request that was answered does not arrive once more, as a command is sent
// once (storetest.Seam).
//
// # Rules
//
//	overlap  no two callers that exclude each other act at one moment: each acts from an answer until
//	         its trust ends or it releases, also if its hold was broken meanwhile
//	permits  no more are taken than there are
//	token    a hold has a larger token than each hold before, and so has each entry into a retained
//	         one that excludes others
//	minhold  nobody is in before a min hold is over
//	order    no ticket passes a place in the queue where a process waits
//	idle     nobody waits for a name that is free, after any request that lets others in
//	left     a caller that has done with a ticket has left no hold and no place of it
//	recall   an ask that a retained hold keeps out tells its process
//	latch    each count-down counts once
//	stuck    from each state, if all others fall silent and what is under way is lost, some waiter
//	         that asks gets in, within the TTL, each min hold, and a claim for each caller
//
// # Retained holds
//
// The search ran with them before their scripts were written. It showed what they depend on:
//
//   - An entry looks at trust itself. Otherwise it acts beside the next holder.
//   - The tokens of entries are reserved at the grant. An entry behind the block would have a token
//     that the next holder has too.
//   - Readers enter with the token of the hold. A new one of its block may be smaller than that of
//     another reader who came later.
//   - A retained hold is no holder's loss when its trust ends, but it is given back like one that
//     was given up: a renewal may have prolonged it.
//
// # A quorum
//
// Three masters are three servers without a queue, and two callers want one lock. A round asks each
// master apart from the others, at any moment of its time. A caller trusts its hold from the
// beginning of a round that a majority has confirmed. It may ask each master again for a hold that
// the master lacks, and gives back at all of them. A master forgets all, at any moment at which the
// other two count; it counts again after the TTL. The rules are overlap and left. Tokens are not
// there: the protocol in memory has no rounds that agree on them.
//
// # What is left out, and why nothing is lost by it
//
//   - A request and its answer take no time, unless the world is slow. A request that takes a tick
//     does what one does that is sent a tick later, and gives less trust. Slow worlds are for bugs
//     in that very rule.
//   - Messages other than that of a hand-over. They make a caller ask, which it may do at any
//     moment.
//   - A caller that gave up begins anew once its cleanup is certain; one that crashed, once the
//     server has nothing of it; one that was evicted, once that is forgotten. In a process they run
//     beside each other. Here another caller does that.
//   - What an answer tells of others. No caller decides anything by it.
//   - Drift and steps of clocks, and data that a server lost: proof/simulate has these.
//
// # A story
//
// The search goes breadth first, so the first story that breaks a rule is a shortest one. It is
// printed move by move, with the requests as they reached the server.
package explore
