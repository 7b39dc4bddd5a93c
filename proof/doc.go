// Package proof shows what holdfast survives. It is made of these parts.
//
// # What is recorded
//
// Package history writes down every operation of a workload: which process called what, when it
// called, when the call came back, with which result, token or tokens, mode (it excludes, it
// shares, so many permits), owner and trust end (Lease.Until). While a lease is held, it writes
// down every moment at which the library said that the lease may be trusted, and the notice of its
// loss. A record is one line of JSON and one write to the kernel, made before the worker goes on.
// So kill -9 of a process takes along no record of a call that had returned.
//
// The parent of the processes adds when it killed, stopped and continued them, and what it did to
// the server and the network. Each process writes down when it stood still by itself, as on a
// machine that has much else to do. All requests go through the parent, which also writes down when
// the server stood still. Lateness that comes of this breaks no rule.
//
// # Against which clock
//
// All times are readings of CLOCK_MONOTONIC. The processes of one Linux host share it, no step of
// the wall clock touches it, and it is the clock of Go's own runtime, so that Lease.Until
// translates into it. Where processes do not share such a clock (Windows), the wall clock takes its
// place, and a step of it spoils the run. A trust end is translated such that a delay in between
// makes it earlier, never later: the check may miss a violation that lasts microseconds, and never
// invents one.
//
// # What is checked
//
// A hold lasts from the return of the Lock that won it to the earliest of: the call of Release, the
// Detach of the lease, the notice of its loss, the last trust end known, the closing of its
// client, the killing of its process. It excludes readers until it is downgraded.
//
// Package judge names the rules, and has those that all parts of the proof share. The functions of
// package history that look for a breach (checkOverlap, checkPermits and so on) say what each rule
// allows, and what excuses a breach. Package workload looks for what is left at the server: no key
// of any name, of its queue or its watchers is without an expiry at any moment. After the longest
// TTL nothing is left of processes that ended well. The places of killed ones in the queue go when
// these count as dead.
//
// Package linear checks the same history once more, against a model of each name and with
// porcupine: whether there is an order of all grants and ends in which each contender could get
// what it got (model).
//
// Package workload is what is recorded: processes that use names of every type, and groups of them.
// They lock, try, read, write, downgrade, take permits, lead, count down, wait, give up, enter
// again, share an owner, hold beyond their TTL, release late or never. A parent kills, stops and
// continues them, silences their network, freezes the server and cuts its connections.
//
// Package tickets is recorded and checked alike: chains of short-lived processes that pass a lease
// on by Lease.Detach and Client.Attach, killed between any two steps.
//
// # A run that failed
//
// Its history is kept, in a directory that the test names. Its seed is printed:
//
//	HOLDFAST_SEED=n HOLDFAST_TORTURE_SECONDS=60 go test -run TestTorture ./proof
//
// draws the same decisions again. Each goroutine of each life of each process has dice of its own
// from the seed, and so has the parent for each process and for the server. So they do the same
// next, with the same options and for the same time, as far as they get the same answers. When the
// kernel runs them does not follow from the seed, so a seed makes a like run, not the same one.
//
// # One fault at a time
//
// Package faults does one thing to the servers of each topology while many lock, or wait, and
// prints what it cost. Package quorum does what only a quorum has. HOLDFAST_FAULTS=20 makes the
// former twenty times as long. Package simulate plays hours of faults on a fake clock, and package
// model compares the scripts with the protocol in memory. README.md has the results.
//
// # Whole clients
//
// Package clock tests them on a fake clock, on the server of package embedded, to the nanosecond.
// Packages traps, security and topology test them on real servers: the traps of docs/traps.md, what
// SECURITY.md promises, and replicas, Sentinel and a Cluster that change. Package harness has what
// these share.
//
// # Whether the checks are worth something
//
// Package mutant breaks a copy of the library on purpose and runs on it the check that must notice:
// a rule of the history, or a test, which must fail. make mutants tries them all.
package proof
