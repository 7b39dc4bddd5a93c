// Package protocol is the seam between the engine and whatever keeps the state of the locks. The
// engine decides which goroutine of this process waits and which holds. The state is kept by our
// wire format on one server or cluster (package native), by N independent masters (package quorum),
// or by the memory of a test (package protocol/memory).
//
// A Protocol keeps names. For each name it knows the holders and, if it can, the queue. All
// requests are plain structs and idempotent per attempt: the same request, arriving twice or late,
// gives the same answer and changes nothing more. The engine relies on four promises:
//
//  1. An Ask takes effect at no moment after its Deadline. So a Free that is sent after that and
//     answered is the last word on the attempt, whatever became of the Ask.
//  2. A Renewal never makes a hold: it prolongs the one with this ticket, or says that there is
//     none.
//  3. A hold is over when its time is over: nothing revives it, and nobody else gets in before.
//  4. Server times are of one clock that the protocol names; the engine compares them with each
//     other alone.
//
// A remainder is what is left of a hold that an operator broke, or that was released before its min
// hold was over. It excludes others as the hold did, to the end that the hold had. No caller can
// renew or enter it. The Free of the holder ends what a Break left, at the earliest at the end of
// the min hold. So nobody else is let in while the holder may still trust its hold. Without a Free
// it ends by itself.
//
// A ticket is the identity of one attempt, from the first Ask to the last Free. A grant is the
// passage from waiting to holding, by an answer or, later, by a message. Package engine has a
// glossary.
package protocol
