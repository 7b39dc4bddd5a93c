// Package proof shows what holdfast survives. It is made of these parts.
//
// # What is recorded
//
// Package history writes down every operation of a workload: which process called what, when it called, when the call
// came back, with which result, token or tokens, mode (it excludes, it shares, so many permits), owner and trust end
// (Lease.Until); then, while a lease is held, every moment at which the library said that it may be trusted, and the
// notice of its loss. A record is one line of JSON and one write to the kernel, made before the worker goes on, so that kill -9
// of a process takes nothing along that had returned. The parent of the processes adds when it killed, stopped and
// continued them, and what it did to the server and the network. Each process writes down when it stood still by itself, as on a machine that has much
// else to do; the parent, through which all requests go, also when the server did: what comes late because of that is held against
// nobody.
//
// # Against which clock
//
// All times are readings of CLOCK_MONOTONIC, which the processes of one Linux host share, which no step of the wall
// clock touches, and which is the clock of Go's own runtime, so that Lease.Until translates into it. Where the clock is
// not shared between processes (Windows), the wall clock takes its place, and a step of it during a run spoils the run.
// A trust end is translated such that a delay in between makes it earlier, never later: the check may miss a violation
// that lasts microseconds, and never invents one.
//
// # What is checked
//
// A hold lasts from the return of the Lock that won it to the earliest of: the call of Release, the offer to another process,
// the notice of its loss, the last trust end known, the closing of its client, the killing of its process; it excludes
// readers until it is downgraded. Then, for every name:
//
//   - overlap: no two trusted holds that exclude each other overlap: one that excludes and any other, unless one entered
//     the other through its context or both are of one owner; readers share;
//   - permits: those of all trusted holds of a semaphore together are never more than there were when the last of them was
//     granted: of a Resize under way, the larger number; of a hold whose process may have learned of
//     another number before, the largest that there ever was;
//   - token: a token given to a call that began after another had returned is larger; no two leases share one, but for readers
//     of one process; holds that exclude each other bear tokens in the order in which they began. So a writer's is larger
//     than those of all before, and no reader's is smaller than that of a writer before it;
//   - minhold: nobody gets in before a min hold is over;
//   - release: none is reported done for a lease that was lost, given back before, or already followed by another's;
//   - trust: nothing brings a lost lease back, Err is never nil past Until, and Check does not confirm what another has;
//   - resource: storage that refuses smaller tokens loses no update, refuses nobody who is trusted, and shows no change to
//     a reader who is;
//   - order: who stands in line is not passed again and again by those that came later, neither a writer by readers nor a
//     large request by small ones;
//   - idle: nobody waits longer than a second for what nobody holds: each wait is bounded by the holders before it, the TTLs of those
//     that ended without a release, and the faults that its report counts;
//   - leader: who leads is told as the leader, with its token;
//   - latch: none opens before as many as were set may have counted down, and none is set twice;
//   - stuck: every call returns by its deadline, not counting the time its process was stopped;
//   - left: no key of any name, of its line or its watchers is without an expiry at any moment; after the longest TTL
//     nothing is left at the server of those who ended well, and what the killed left, their places in line, goes when
//     they count as dead.
//
// Package linear checks the same history once more, against a model of each name and with porcupine: whether there is an
// order of all grants and ends in which everyone could get what it got (model).
//
// Package workload is what is recorded: processes that use names of every type, and groups of them: lock, try, read, write,
// downgrade, take permits, resize, lead, count down, wait, give up, enter again, share an owner, resume what another
// process let go, hold beyond their TTL, release late or never; and a parent that kills, stops and continues them, silences
// their network, freezes the server and cuts its connections.
//
// # A run that failed
//
// Its history is kept, in a directory that the test names, with a drawing (history.html): a lane for each name, with
// waits, holds, faults and violations. Its seed is printed:
//
//	HOLDFAST_SEED=n HOLDFAST_TORTURE_SECONDS=60 go test -run 'TestTorture|TestCalm' ./proof
//
// draws the same decisions again: each goroutine of each life of each process has dice of its own from the seed, and so has
// the parent for each process and for the server; so what they do next, with which options and for how long, is
// repeated, as far as they get the same answers. When the kernel runs them is not, so a seed makes a like run, not the same one.
//
// # One fault at a time
//
// Package faults does one thing to the servers of each topology while many lock, or wait, and prints what it cost; package quorum
// does what only a quorum has. HOLDFAST_FAULTS=20 makes the former twenty times as long.
//
// # Whole clients
//
// Package clock tests them on a fake clock, on the server of package embedded, to the nanosecond. Packages traps, security
// and topology test them on real servers: the traps of docs/traps.md, what SECURITY.md promises, and replicas, Sentinel and
// a Cluster that change. Package harness has what these share.
//
// # Whether the checks are worth something
//
// Package mutant breaks a copy of the library on purpose and runs on it the check that must notice: a rule of the history, or a
// test, which must fail. make mutants tries them all. Command noise runs tests while anything in them may stand still.
package proof
