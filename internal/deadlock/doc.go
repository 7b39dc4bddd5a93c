// Package deadlock finds cycles of waiters by what the servers know of names: each waits for what
// the next one holds. It only reads, and it ends no wait.
//
// The place of a waiter in a queue may name the holds under which it waits, up to eight, with the
// ticket of each: the evidence. A walk begins with the holds that keep one waiter out, and with the
// names that it holds. In the queues of these it finds the waiters that its holds keep out. Their
// evidence says which names they hold, and so on, until one of them has a hold that keeps out the
// first waiter. A hold keeps a waiter out if it excludes the waiter, or another in front of it: a
// reader waits behind a writer that other readers keep out.
//
// A cycle counts when two walks saw the same tickets and holds, and every ticket in it has asked
// between them (Suspicion). So at one moment between the walks all of its members waited, and all
// of their holds were held. A process that crashed does not ask, and what it left is no deadlock:
// it ends by itself.
//
//	         a walk                 a cycle          the same cycle, and all have asked
//	WAITING -------> no cycle seen ---------> SUSPECTED -------------------------------> CONFIRMED
//	                  ^  |    ^                |   ^   |
//	                  +--+    +----------------+   +---+
//	                            another, none    the same
//
// The member that joined its queue last is the victim; of two, the one with the larger ticket. A
// walk follows only waiters that joined before its own. So a waiter finds the cycles whose victim
// it is, and no other: each process ends only its own wait, and each cycle has one victim. If
// cycles cross, each has its victim, although the end of one might have been enough for both.
//
// A walk inspects names 100 times at most, and never scans. Search scans: it walks from every
// waiter with evidence.
//
// Not seen are: callers whose places have no evidence, or leases of another client; semaphores, as
// no single hold of them keeps a waiter out; polling, which has no place in a queue; quorums, which
// have no queue; more leases than the evidence names; cycles for which 100 requests are too few.
package deadlock
