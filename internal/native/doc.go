// Package native is holdfast's own wire format: the state of a name in one key, changed by scripts.
//
// # Keys
//
// All keys of a name lie in one slot, and every key a script touches is in its KEYS.
//
//	PREFIX:{NAME}            the state of the name: who holds; in NAME, "%" and "}" are escaped, so that every name is a
//	                         hash tag and no two names share a key
//	PREFIX:{NAME}:line       who waits
//	PREFIX:{NAME}:watchers   who wants to be told of the next change: of elections and latches
//	PREFIX:{SLOT}:clock      the largest token given out in the slot; SLOT is a short fixed string that hashes there
//	PREFIX:@PROCESS          no key but a channel: what is told to one client
//	PREFIX:{SLOT}:@PROCESS   the same where channels are sharded: one for each slot in which it waits
//
// PROCESS is host/pid/ and 22 random characters, so that a channel says whose it is.
//
// The clock is one a slot, not one a name: names come and go, at most 16,384 clocks stay, and the
// tokens of a name grow because those of its slot do. A token is the larger of last+1 and the
// server's microseconds: it rises through the deletion of the name, a restart and lost writes (by
// time), and through a clock that steps back (by last), but not through both at once. A clock key
// of fewer than 16 digits, which no script writes, counts as that number. What it overwrote is
// lost, so the next token is the larger of that number + 1 and the time.
//
// # The state of a name, of every kind
//
//	no key      nobody holds
//	a string    one holds who excludes everybody: ticket (26 bytes), token (16 digits), payload; it expires with the hold
//	a set       holds that others may enter: a sorted set of the members below; it expires with the last of them
//	a latch     a string too: stamp, id that set it, "s" set or "o" open, count, ":", TTL
//
// A ticket is the format number, the kind (m mutex, r read-write, s semaphore, e election, l
// latch), the mode, a colon, and 128 random bits in 22 characters. The mode says beside whom it
// holds:
//
//	x  nobody; the short ways of the scripts are for it
//	w  nobody, and watchers are told: an election
//	o  those of its owner
//	s  those that share: readers, and all of a semaphore as far as its permits go
//	-  a remainder: what is left of a hold; nobody can renew, resume or enter it
//
// Each member starts with a ticket, so that another kind or format is seen by the same read,
// refused and left as it was.
//
//	key     member           score
//	state   ticket payload   a hold: its end in server milliseconds; + 1e13 when it shares
//	state   - ticket payload a remainder: as the hold that it was
//	state   t ticket         the token of a hold or a remainder, negative
//	state   w, c             of a semaphore: the permits that are held, those there are; negative
//	state   r, f             of holds that share: when all remainders, and all holds that are not renewed, are over, in
//	                         server milliseconds; negative
//	line    c                of a semaphore: those there are, negative; the holds may end by themselves while some wait
//	line    ticket payload   a waiter: its place: the server's microseconds when it joined, or one more than the last; from 1
//	line    l ticket         the end of a waiter's life in server milliseconds, negative; none while nobody asked again:
//	                         it is 18 s from its place then
//
// What is negative or 0 is looked up by name only. Of the rest, one range holds the members of one
// sort: "who excludes", "how many share", "who is first in line" and "how many stand before me" are
// each one command, and the cost of none grows with the length of the line.
//
// A payload is what the hand-over must know of a waiter, and what others read of a holder:
//
//	claim:block:TTL:length:length:length: channel owner extras label     (without the spaces)
//
// Claim is milliseconds, in a semaphore followed by "/weight/permits". Block is the number of
// tokens that a grant reserves. TTL is milliseconds, followed by "f" where the hold is not renewed.
// The lengths are those of channel, owner and extras. The mark before a channel says how it is
// published on: "p" plain, "c" plain in a cluster, where a node does not know who listens
// elsewhere, "s" sharded. Extras are name:length:value, one after the other; a reader skips those
// that it does not know. A payload never changes while its ticket lives, so that client and server
// name members alike.
//
// # Remainders
//
// A hold becomes a remainder when it is released before its min hold is over, and when another
// caller takes it over. The remainder excludes others as the hold did, to the end of the min hold,
// or to the end that the hold had. Its ticket is that of the hold with the mode "-", and its
// payload that of the hold with three extras more: "why", which is "k" for a min hold and "r" after
// a resume; "by", the label of the caller that took the hold over; and "to", the id of that
// caller's ticket, or of the last that took over from it. That ticket holds beside it, so the state
// is a set until one of the two is left. To all other resumes it is in the way. An owner enters
// beside a hold of its own only if every remainder is its own as well.
//
// The former holder's process is told of a resume on its channel, and else by the answer to its
// next renewal. Its free removes the remainder, or ends it at the end of its min hold, and is
// answered "was taken over". Without a free the remainder ends by itself.
//
// # Handing over
//
// Who gives back, leaves the line, or asks and finds a hold's time over, lets in from the head of
// the line all that may hold now: each becomes a hold whose end is its claim, and is told alone, on
// its process's channel. The first that may not hold stops that: nobody passes it. A waiter whose
// process does not listen (it crashed, or its connection broke) is passed over and keeps its place.
// The server is asked for that before the message goes out: what was sent may be heard, and is
// believed. One whose life is over is taken out. Nobody is told when a remainder ends, or a hold
// that is not renewed: so the first in line is told beforehand when the first of all holds ends,
// and so is the waiter that becomes the first meanwhile.
//
// A message is the format number, what it says, the id of the ticket that it says it to, and the
// rest:
//
//	2G ID TOKEN BLOCK|CLAIM|NOW   it holds: token, tokens reserved, ms of its claim, server time
//	2N ID AFTER                   it is to ask after so many ms, or something that it watches has changed
//	2R ID                         its hold may have been taken over: it is to ask
//
// A semaphore has the number of permits that its first holder named, or the last Resize, while
// anybody holds or waits.
//
// # Time
//
// Scripts ask the server for its time and compare it with times that the server gave. A time has 16
// digits, so that it compares as text; what it shows does not matter, from 1 us on. A request that
// may win something carries a "not after" in server time, from the bounds that earlier answers gave
// (wire.Clock); before the first answer the client asks for the time alone.
//
// # Scripts
//
// Each is a file with its contract at the top; "--@include" joins what several share. Comments and
// indentation are cut before a script is sent. Digests are constants, checked by a test, so that no
// SHA-1 is computed at run time (it is refused under FIPS rules).
//
// A script that a server refuses in the middle, for want of a permission or because a key is of
// another type, leaves what it wrote before. Servers say the line, and from that the client reads
// the command, which key it was, and whether anything can have been written: not in the lines
// between "--@untouched" and "--@touched" (package wire). So every command takes its key by the
// same name in all scripts. What takes a hold out of a set or puts one in does so in one command,
// so that what a refusal leaves behind is a set of holds, which ends by itself.
package native
