// Package native is holdfast's own wire format: the state of a name in one key, changed by scripts.
// Package wire carries its requests.
//
// # Keys
//
// All keys of a name lie in one slot, and every key that a script touches is in its KEYS.
//
//	PREFIX:{NAME}            the state of the name: who holds
//	PREFIX:{NAME}:queue      the queue: who waits; of a latch, the ids that counted down lately
//	PREFIX:{NAME}:watchers   who is to be told of the next change: of elections and latches
//	PREFIX:{NAME}:once       a result of holdfast once, which alone reads and writes it
//	PREFIX:{SLOT}:clock      the largest token given out in the slot
//	PREFIX:{SLOT}:ready      never written: see package wire, Probe
//	PREFIX:{%history:CLASS}  what happened to the names of a class: see package history
//	PREFIX:@PROCESS          no key but a channel: messages to one client
//	PREFIX:{SLOT}:@PROCESS   the same where channels are sharded: one for each slot in which the
//	                         client waits
//	PREFIX:@ticket/ID        the channel of one kept place; PREFIX:{SLOT}:@ticket/ID where channels
//	                         are sharded
//	PREFIX-remote:...        the channels of questions about leases: see package remote
//
// In NAME, "%" and "}" are escaped. So every name is a hash tag, and no two names share a key. SLOT
// is a short fixed string that hashes to the slot. PROCESS is host/pid/ and 22 random characters,
// so a channel says whose it is.
//
// There is one clock a slot, not one a name: names come and go, at most 16,384 clocks stay, and the
// tokens of a name grow because those of its slot do. A token is the larger of last+1 and the
// server's microseconds. So tokens rise through the deletion of the name, a restart and lost writes
// (by time). They also rise through a clock that steps back (by last). They need not rise through
// both at once. A clock key of fewer than 16 digits, which no script writes, counts as that number.
// The value that it overwrote is lost, so the next token is the larger of that number + 1 and the
// time.
//
// # The state of a name, of every kind
//
//	no key      nobody holds
//	a string    one hold that excludes everybody: ticket (26 bytes), token (16 digits), payload; it
//	            expires with the hold
//	a set       holds that others may enter: a sorted set of the members below; it expires with the
//	            last of them
//	a latch     a string too: front, id that set it, "s" set or "o" open, count, ":", TTL
//
// A ticket is the format number, the kind (m mutex, r read-write, s semaphore, e election, l
// latch), the mode, a colon, and 128 random bits in 22 characters. The mode says beside whom the
// ticket holds:
//
//	x  nobody; the short ways of the scripts are for it
//	w  nobody, and watchers are told: an election
//	o  those of its owner
//	s  those that share: readers, and all of a semaphore as far as its permits go
//	-  a remainder: what is left of a hold; nobody can renew or enter it
//
// The member with the largest score starts with a ticket. So the same read shows another kind or
// format, which is refused and left as it was.
//
//	key     member           score
//	state   ticket payload   a hold: its end in server milliseconds; + 1e13 if it shares
//	state   ticket payload   a remainder: the ticket has the mode "-"; as the hold that it was
//	state   t ticket         the token of a hold or a remainder, negative
//	state   w, c             of a semaphore: the permits that are held, those there are; negative
//	state   r, f             of holds that share: when all remainders, and all holds that are not
//	                         renewed, are over, in server milliseconds; negative
//	queue   c                of a semaphore: those there are, negative; the holds may end by
//	                         themselves while some wait
//	queue   ticket payload   a waiter: its place: the server's microseconds when it joined, or one
//	                         more than the last; from 1
//	queue   l ticket         the end of a waiter's life in server milliseconds, negative; a waiter
//	                         that has not asked again has none, and lives from its place on for
//	                         as long as the request says that finds it; a kept place has one
//	                         while it is not closed
//	queue   ticket payload   a kept place that is closed: the end of its life in server milliseconds,
//	                         negative
//	queue   n ticket         where a closed place was: its place + 1e15, negative
//	queue   e ticket         a ticket that was evicted: the time until which that is remembered, in
//	                         server milliseconds, + 5e14, negative
//	queue   e ticket : label by whom it was evicted: the same
//
// The watchers are a hash: the channel of a watcher, with its mark, by the id that a message to it
// carries. A change sends "3N" to all of them and removes the key. The queue of a latch is a sorted
// set too: the ids of count-downs, by the server microsecond after which no request with that id
// takes effect.
//
// Of the members whose score is positive, one range holds those of one sort. Those with a negative
// score are found by name, or by their range where lives, closed places and evictions are swept. So
// "who excludes", "how many share", "who is first in the queue" and "how many stand before me" are
// one command each, and the cost of none grows with the queue.
//
// A payload is what the hand-over must know of a waiter, and what others read of a holder:
//
//	claim:block:TTL:length:length:length: channel owner extras label     (without the spaces)
//
// Claim is milliseconds, in a semaphore followed by "/weight/permits". Block is the number of
// tokens that a grant reserves. TTL is milliseconds, followed by "f" if the hold is not renewed.
// The lengths are those of channel, owner and extras. The mark before a channel says how to publish
// on it: "p" plain, "c" plain in a cluster, where a node does not know the subscribers of others,
// "s" sharded. Extras are name:length:value, one after the other. A reader skips the extras that it
// does not know. A payload never changes while its ticket lives, so client and server name members
// alike. A process that attaches a hold of another therefore names that one's channel.
//
// A kept place has the extra "keep", the milliseconds that it lives after each ask.
//
// A hold whose process is to be told of each ask that it keeps out has the extra "hears". It is "r"
// if the hold may stay with its process while nobody uses it there, and else "w".
//
// A ticket that waits under leases, and checks for deadlocks, has the extra "under": its evidence.
// For each lease it has the id of the hold's ticket (22 characters), the length of the name, ":"
// and the name. A "+" at the end says that there are more leases. The ticket keeps the extra when
// it holds, as no payload changes.
//
// A ticket whose caller is traced has the extra "trace": where it belongs in the trace, as its
// client writes it. A waiter reads it of the holder that an answer names.
//
// # Remainders
//
// A hold becomes a remainder if it is released before its min hold is over, and if an operator
// breaks it. The remainder excludes others as the hold did, to the end of the min hold, or to the
// end that the hold had. Its ticket is that of the hold with the mode "-". Its payload is that of
// the hold with two extras more:
//
//	why   "k" for a min hold, "b" of a broken hold
//	by    the label of the caller that broke the hold; else empty
//
// An owner enters beside a hold of its own only if every remainder is its own as well.
//
// A break names the hold by any token of its block. It is told to the holder's process on its
// channel, and otherwise by the answer to its next renewal. Its free removes the remainder, or ends
// it at the end of its min hold, and is answered "was broken". Without a free the remainder ends by
// itself. A break breaks a hold that was handed over and not yet taken up as well: what is left of
// that lasts for the claim. Then the next ask of the ticket is answered "was broken". A break of
// what another break left of a hold is answered as the first. A break by force leaves nothing of a
// hold or a remainder, and hands over.
//
// # Handing over
//
// A script hands over if it gives a hold back or leaves the queue; an ask also if it finds a hold's
// time over. It lets in from the head of the queue all waiters that may hold now. Each becomes a
// hold whose end is its claim, and is told alone, on its process's channel. The first waiter that
// may not hold ends the hand-over: no other passes it.
//
//   - A waiter whose process does not listen is passed over and keeps its place. Its process
//     crashed, or its connection broke. The script asks the server for that before the message goes
//     out: a message that was sent may arrive, and is believed. If no waiter can be let in and
//     told, a release lets the first of them in untold. That waiter learns of its hold by its next
//     ask.
//   - A waiter whose life is over is taken out. How long a place lives is said by the request that
//     hands over, and of a kept place by its payload.
//   - A member that is no waiter of ours is passed over, and stays until its life is over.
//   - Nothing is sent when a remainder ends, or a hold that is not renewed. So the first waiter is
//     told beforehand when the first of all holds ends, and so is the waiter that becomes the first
//     meanwhile.
//
// A message is the format number, what it says, the id of the ticket that it is for, and the rest:
//
//	3G ID TOKEN BLOCK|CLAIM|NOW   it holds: token, tokens reserved, ms of its claim, server time
//	3N ID AFTER                   it is to ask after so many ms, or something that it watches has
//	                              changed
//	3R ID                         its hold may have been broken: it is to ask
//	3W ID                         another asks for the name that it holds, perhaps without using it
//
// While any ticket holds or waits, a semaphore has the number of permits that its first holder
// named, or the last Resize.
//
// # Inspecting
//
// Inspect runs one script, which writes nothing: it does not take out the holds whose time is over,
// as the scripts that include holds.lua do first. So it leaves them out of what it tells. Its cost
// goes by the size of its answer, not by how many hold and wait. If a place is closed, up to 1,000
// lives of waiters are read as well.
//
//   - A hold that ends with its claim, counted from its token, was handed over and is not taken up
//     yet. A hold that was asked for or renewed ends later.
//   - The last renewal was a TTL before the end of the hold. It is later than that if the max hold
//     ends the hold.
//   - A place whose life is over is told until a script takes it out.
//   - Whether a waiter listens is what PUBSUB NUMSUB says of its channel. It is not known where the
//     server may not be asked for that, nor on a cluster without sharded channels, nor of a waiter
//     that no message reaches.
//   - A place that is closed is told where it was. If more than 1,000 waiters and closed places
//     have a life noted, who waits at a closed place may not be told.
//
// A clock that was set back can hide when a hold was granted: its token is later than the time. The
// hold is then told as taken up, without the time of its grant.
//
// # Evicting
//
// An operator takes a ticket out of the queue, which hands over to those behind it, and nudges the
// ticket. Two markers in the queue stay for as long as its place may have lived. While they are
// there, an ask of the ticket is answered "was evicted" and changes nothing. They are no waiters,
// and no hand-over looks at them. The free that follows takes them out. Otherwise the next eviction
// does, or an ask of a waiter, or the end of the queue.
//
// An ask whose answer was lost is sent again as the first was. By its short way a ticket that was
// evicted meanwhile joins again. Its next ask takes it out, and is answered "was evicted".
//
// # Kept places
//
// The place of a kept ticket stays between the waits of several processes. Its channel is that of
// the ticket, so its payload is the same in all of them. Most of the time no process listens. The
// hand-over is therefore an offer: the kept ticket gets the name for its claim as any other, but
// its place stays in the queue until it asks. If the claim runs out, the name is free and the place
// is where it was. So an offer that nobody takes up costs the other waiters one claim, and the kept
// ticket nothing.
//
//   - A kept place is closed while nobody waits there. No hand-over sees it, so it costs the others
//     nothing, and it is not counted among the waiters. An ask opens it where it was.
//   - The last ask of a wait closes the place. So does an offer: a kept ticket gets one for each of
//     its asks. So does a hand-over that could let the ticket in but finds that its channel is not
//     heard, as the process was killed. A process asks each time after it subscribed, and opens it.
//   - A process that did not ask for as long as an ordinary place lives does not count as one that
//     waits, even if it seems to listen: the server may take the connection of a silent host for
//     open.
//   - A kept ticket is offered the name only if the server is certain that its channel is heard.
//     A node of a cluster without sharded channels is not, and neither is a server that refuses to
//     say. There a hand-over passes the place, whether the ticket could hold now or not. The ticket
//     is nudged if the name is left free. It gets in by its own ask, if no waiter behind it was let
//     in before.
//   - No release lets a kept ticket in untold.
//   - A kept ticket never joins the queue again by asking. If it has neither a place nor a hold,
//     the answer is "B", and nothing is changed for it. A place whose life is over is none.
//
// A holder with a kept ticket learns of a break by its next renewal: it does not listen with the
// ticket any more.
//
// # Time
//
// Scripts ask the server for its time and compare it with times that the server gave. A time has 16
// digits, so it compares as text. Any time from 1 us on will do. A request that may win something
// carries a "not after" in server time, from the bounds that earlier answers gave (wire.Clock).
// Before the first answer the client asks for the time alone.
//
// # Scripts
//
// Each script is a file with its contract at the top: its keys, arguments and replies, and what a
// repeated request does. "--@include" joins what several share. Comments and indentation are cut
// before a script is sent. Digests are constants, checked by a test, so no SHA-1 is computed at run
// time (it is refused under FIPS rules).
//
// Each script has a second text, for Config.NoEvict, in which a line "--@noevict KEY" is a command
// that keeps the key from eviction. Such a line follows each write that may make a state or a
// clock.
//
// A server may refuse a script in the middle, for want of a permission or because a key is of
// another type. Then what the script wrote before stays. The server says the line. From that the
// client reads the command, which key it was, and whether anything can have been written before.
// Nothing can at a line between "--@untouched" and "--@touched" (package wire). So every command
// takes its key by the same name in all scripts. One command takes a hold out of a set or puts one
// in. So what a refusal leaves behind is a set of holds, which ends by itself.
package native
