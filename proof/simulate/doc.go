// Package simulate runs hours of lock traffic and trouble in about a second each. Real scripts, the
// real go-redis client and the whole library run on an embedded server (miniredis), behind a
// network in memory, on the fake clock of testing/synctest.
//
// Draw makes a Plan of a seed: three to six clients on hosts of their own, the faults, and some 520
// operations on mutexes, a read-write lock, a semaphore, an election and groups. Run plays it. A
// ledger applies the rules of package judge while it goes on (rules.go).
//
// Some 40 times a run, an operator breaks a hold of a name, often one that is handed over just
// then, or evicts a waiter. The holder's code runs on for up to 5 s after its lease is lost. All
// that time, or until its hold would have ended, it counts as a holder: nobody else may be let in
// beside it. A lease may be lost as broken only if an operator tried to break its hold, and a wait
// may end as evicted only if one tried to evict. Over a quorum only holds are broken.
//
// In the last eight minutes the clients share out some shards, and leave and come back (shards.go).
// A shard is a mutex like others, whose function must return before the next begins. Two TTLs and
// 5 s after the last fault or change of members, each shard runs and the shares are fair, which is
// looked at every second. A quorum refuses shards.
//
// A holder that crashes is replaced after its TTL, or up to 6 s after the name was handed over to
// it, if that is later: the next waiter learns when the new holder's time is over only when it
// asks.
//
// # Modes
//
// Calm has no faults. Network has silence (both ways or one), latency, requests and answers lost,
// requests that arrive twice, cuts, lost messages, processes killed, hosts that vanish, restarts
// with data, SCRIPT FLUSH and error replies. Forget adds FLUSHALL, deleted keys and restarts
// without data; Clock adds steps of the server's clock. These two let another in beside a holder,
// by design, until its next renewal: for 11 s after each such fault, overlaps are not counted and
// losses are excused; then all is checked again. In all modes but Calm the server's clock runs up
// to 0.9 % fast or slow.
//
// Quorum, which DrawQuorum draws, has three or five masters and what a quorum supports, with
// owners and breaks. A hold that was broken keeps others out until its holder has released it, or
// its time is over (operate.go). Each master has a clock, a latency and troubles of its own on the
// path from each client. Up to a third of all paths are troubled at one time; one master after the
// other loses its memory, amid a hold. The rules above excuse nothing for that. Besides, the run
// looks every 20 ms whether fewer masters than a majority would let another in before the trust in
// a hold ends (quorum.go), and every second whether any key would stay for ever. Order is not
// checked, and a wait may last 12 s.
//
// A process that stands still cannot be simulated: all timers of a bubble go by one clock.
//
// # Clocks
//
// The clock of each server shows any time from 1970 to 2112 when a run begins (drawMoment). In mode
// Clock it steps, to and fro. The ledger excuses what no client can prevent then: see
// overlapExcuse. Package clock has the steps by years.
//
// # What a seed repeats
//
// The plan follows from the seed alone. The run does not altogether: the library's jitter, the ids
// of its holds, Go's select and its maps draw from sources that no seed rules. A violation mostly
// shows again with its seed, but not always:
//
//	cd proof && HOLDFAST_SIMULATE=1 HOLDFAST_HISTORY=1 HOLDFAST_SEED=2 HOLDFAST_RUNS=1 go test ./simulate -run '^TestSimulate$' -v
//
// # What a run costs
//
// A run costs some 1.1 s of one core, 5 s over a quorum. Two thirds of that are miniredis, which
// runs some 7,000 scripts, a third of them for shards, or 43,000 over a quorum. It makes a Lua
// machine for each, which costs nearly as much as the script. Runs are independent, and a process
// makes one after the other, so that what counts is cores.
package simulate
