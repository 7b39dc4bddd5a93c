// Package lottery is the demo: a lottery in which several processes want to draw the winner of every round, and only
// one may. They share nothing but a lock.
//
// The Hall is the parent process. It starts the workers, opens one round after the other, and keeps the Ledger, which
// is the storage that a lock protects: it takes one draw a round, and none with a fencing token that is not larger than
// all before. A worker that has got the lock asks the ledger whether the round has been drawn; if not, it takes its
// time and draws. Without a lock that works, two would be told "not yet" and both would draw: a double draw, which the
// ledger counts.
//
// In some rounds something happens to the holder before it draws, and the Hall measures how long the next one takes to get
// in. One is stopped past its TTL and continued when the round is over: it goes on as if nothing had been, its late
// draw is refused by its token, and it sees that it has lost its lease. One takes its time, beyond its max
// hold: its lease ends although it is renewed. One is killed with -9.
//
// Hall and workers talk over the workers' standard input and output, a JSON value a message:
//
//	hall                         worker
//	setup                 ->
//	                      <-     ready
//	round 7 is open       ->
//	                             waits for the lock
//	                      <-     entered, with the token
//	drawn already, or not ->
//	                      <-     draw, with the token           only if it was not
//	taken, or refused     ->
//	                      <-     leaving
//	noted                 ->
//	                             releases the lock
//	                      <-     done
//
// A worker goes on only when the hall has answered. So the order in which the hall sees entering and leaving is the
// order in which it happened, whatever the clocks say, and two inside at once are seen. Only the length of a
// hand-over is measured by the wall clock, which all processes of a host share.
//
// A worker ends when its standard input does: however the hall ends, no worker is left.
package lottery
