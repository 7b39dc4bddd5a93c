// Package proof shows what holdfast survives. It is made of three parts.
//
// # What is recorded
//
// Package history writes down every operation of a workload: which process called what, when it called, when the call
// came back, with which result, token and trust end (Lease.Until); then, while a lease is held, every moment at which
// the library said that it may be trusted, and the notice of its loss. A record is one line of JSON and one write to
// the kernel, made before the worker goes on, so that kill -9 of a process takes nothing along that had returned.
// The parent of the processes adds when it killed, stopped and continued them.
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
// A hold lasts from the return of the Lock that won it to the earliest of: the call of Release, the notice of its loss,
// the last trust end known, the closing of its client, the killing of its process. Then, for every name:
//
//   - overlap: no two trusted holds overlap, unless one entered the other through its context;
//   - token: a token given to a call that began after another had returned is larger; no two holds share one; holds that
//     were trusted bear tokens in the order in which they began;
//   - release: none is reported done for a lease that was lost, given back before, or already followed by another's;
//   - trust: nothing brings a lost lease back, and Err is never nil past Until;
//   - resource: storage that refuses smaller tokens loses no update, and refuses nobody who is trusted;
//   - stuck: every call returns by its deadline, not counting the time its process was stopped;
//   - left: after the longest TTL nothing is left at the server of those who ended well, and what the killed left, their
//     places in line, goes when they count as dead.
//
// Package workload is what is recorded: processes that lock, try, wait, give up, enter again, hold beyond their TTL,
// release late or never, and a parent that kills, stops and continues them, silences their network, freezes the server
// and cuts its connections. Its decisions follow from a seed, its timing does not, so a seed makes a like run, not the
// same one.
//
// # One fault at a time
//
// The tests named TestFault* do one thing to a single server while many lock, or wait, and print what it cost: scripts flushed,
// connections killed, messages lost, 10,000 waiters, waiters cancelled in storms, dead heads of the line, data flushed,
// deleted or evicted, memory used up, kill -9 with and without an AOF. HOLDFAST_FAULTS=20 makes them twenty times as long.
//
// # Whether the checks are worth something
//
// Package mutant breaks a copy of the library on purpose and runs on it the check that must notice: a rule of the history, or a
// test, which must fail. make mutants tries them all.
package proof
