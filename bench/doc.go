// Bench measures holdfast side by side with other ways to exclude each other over one server.
//
//	go run ./bench                      # the whole table
//	go run ./bench -rows 1,4 -runs 9    # two rows of it, with more care
//	go run ./bench -contenders redislock
//
// It starts a redis-server of its own, 7.0.5 or newer, and stops it at the end. There are
// fourteen rows, each with a reference that it is compared to:
//
//	1  lock and unlock of a name of one's own, one goroutine       reference: the bare pair
//	2  the same by 64 goroutines, each its own name                reference: the bare pair
//	3  16 goroutines of one process, one name                      reference: sync.Mutex, to know the distance
//	4  8 processes, one name, hand-overs                           reference: the baton
//	5  two processes taking turns, the time of a hand-over         reference: the baton
//	6  row 1 with Config.History                                   reference: holdfast without
//	7  row 2 with Config.History                                   reference: holdfast without
//	8  row 1 again                                                 reference: redislock
//	9  4 processes of 16 goroutines, one name, 95 % read           reference: holdfast without WithRetain
//	10 row 5 with WithRetain, and what one retains without using   reference: holdfast without
//	11 2, 20 and 200 goroutines in the server's queue, one name    reference: 2 of them
//	12 10,000 leases that are held: what each takes on the heap    reference: redislock
//	13 16 hosts want a value that takes 5 ms to make, until all    reference: the same by hand on redislock
//	   have it
//	14 what each request costs at the server, by what it does      reference: an acquire that is granted
//
// The bare pair is what a lock costs at least if nobody else wants it: SET NX PX, and a script that
// compares and deletes. The baton is no lock at all, but what passing something on through the
// server costs at least: BLPOP and RPUSH of one element, which dies with its holder.
//
// # How it measures
//
// The contenders of a row run one after the other, and the whole round is repeated: A B C A B C. A
// ratio is taken within a round, and the median of the rounds is shown with the smallest and the
// largest beside it. So a machine that is busy for a while spoils a round, not a contender.
//
// Commands are those that clients sent, as counted by the server; what scripts call inside is not
// counted. Jain is Jain's index of fairness over the acquisitions of each goroutine or process: 1
// is perfectly even, 1/n is one having all. "In turn" is the share of acquisitions between whose
// asking and getting about as many others got in as there are, give or take a quarter: whoever
// overtakes waits for fewer, whoever is overtaken for more. In all rows with contention the holders
// enter and leave on a [board] shared between the processes, and two at once are counted.
//
// Server CPU is that of the server's process. In scripts is the time that it takes for the
// commands, by its own statistics, which on a busy machine includes that of others. Client CPU and
// allocations are those of the whole process of the bench.
//
// Retained, holdfast is as with WithRetain: row 1 shows what a lock costs then, and rows 5 and 10
// that two processes which take turns lose little by it. A name is retained and unused if one
// process retains it and does not use it; row 10 has the time until the other is in.
//
// A contender that leaves somebody waiting for ever is reported, and its numbers are those from
// before that was noticed.
//
// In row 13 each host asks once for a new value: package flight, rueidisaside, and a look, a lock
// of redislock and a second look. The time is that from the moment at which the value is made until
// the last host has it.
//
// Contenders that poll do so at the interval of the flag -poll, which is shorter than their own
// defaults and so flatters them.
package main
