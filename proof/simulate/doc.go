// Package simulate runs hours of lock traffic and trouble in about a second each: real scripts, the real go-redis client and the
// whole library, on an embedded server (miniredis) behind a network in memory, on the fake clock of testing/synctest.
//
// Draw makes a Plan of a seed: three to six clients on hosts of their own, some 520 operations on mutexes, a read-write
// lock, a semaphore, an election, groups and latches, and the faults. Run plays it. A ledger checks while it goes on:
//
//   - overlap: when a lease is given, no other that excludes it is trusted, by its own Err;
//   - token: tokens of those that exclude grow, and none comes twice; an entry has the token of its hold;
//   - minhold: nobody gets in before a min hold is over;
//   - order: in calm runs in strict order, nobody overtakes who called 100 ms before;
//   - stuck: nobody waits for longer than 1.5 s while nobody holds, once 38 s have passed since the last fault;
//   - lost: no hold is lost without a fault, none is found gone, and each loss is told by the end of its trust;
//   - release, failed: calls say what is so, and fail for a reason; what was given back is not renewed;
//   - latch: none opens before all have begun to count down, or stays shut;
//   - left: nothing is left at the server, and no goroutine.
//
// # Modes
//
// Calm has no faults. Network has silence (both ways or one), latency, requests and answers lost, requests that arrive twice,
// cuts, lost messages, processes killed, hosts that vanish, restarts with data, SCRIPT FLUSH and error replies. Forget
// adds FLUSHALL, deleted keys and restarts without data; Clock adds steps of the server's clock. These let
// another in beside a holder, by design, until its next renewal: for 11 s after each, overlaps are not counted and losses
// are excused; then all is checked again. In all but Calm the server's clock runs up to 0.9 % fast or slow.
//
// Quorum, which is drawn by DrawQuorum, has three or five masters, each with a clock, a latency and troubles of its own on the path from each client, and
// what a quorum supports, with owners and resumes. Up to a third of all paths are troubled at one time; one master after the other loses its memory, amid a hold.
// Nothing is excused: besides the rules above, it is looked every 20 ms whether fewer masters than a majority would let another in before the trust
// in a hold ends (covered.go), and every second whether any key would stay for ever. Order is not checked, and who waits may wait for 12 s.
//
// A process that stands still cannot be simulated: all timers of a bubble are one clock's.
//
// # What a seed repeats
//
// The plan follows from the seed alone. The run does not altogether: the library's jitter, the ids of its holds, Go's select
// and its maps draw from sources that no seed rules. What became of each operation was the same twice in calm
// runs, mostly in others; times differ by the jitter. A violation mostly shows again with its seed, but not always:
//
//	cd proof && HOLDFAST_SIMULATE=1 HOLDFAST_HISTORY=1 HOLDFAST_SEED=2 HOLDFAST_RUNS=1 go test ./simulate -run '^TestSimulate$' -v
//
// # What a run costs
//
// Some 0.7 s of one core, 5 s over a quorum, and two thirds of that are miniredis running some 4,300 scripts, or ten times as many: it makes a Lua machine for each,
// which costs nearly as much as the script. Runs are independent, and a process makes one after the other, so that what counts is cores.
package simulate
