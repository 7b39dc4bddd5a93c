// Package native is holdfast's own wire format: the state of a name in one key, changed by scripts.
//
// # Keys
//
// All keys of a name lie in one slot, and every key a script touches is in its KEYS.
//
//	PREFIX:{NAME}         the state of the name; in NAME, "%" and "}" are escaped, so that every name is a hash tag
//	                      and no two names share a key
//	PREFIX:{SLOT}:clock   the largest token given out in the slot; SLOT is a short fixed string that hashes there
//	PREFIX:@PROCESS       no key but a channel: what is told to one client
//
// The clock is one a slot, not one a name: names come and go, at most 16,384 clocks stay, and the tokens of a name
// grow because those of its slot do. A token is the larger of last+1 and the server's microseconds: it rises through
// the deletion of the name, a restart and lost writes (by time), and through a clock that steps back (by last), but
// not through both at once.
//
// # The state of a name, of every kind
//
//	no key      free, and nobody waits
//	a string    one holds, nobody waits: ticket (26 bytes), token (16 digits), payload; it expires with the hold
//	a set       anything else: a sorted set of the members below; it lives some seconds longer than all of them
//	a hash      a latch: format and kind, count, generation
//
// A ticket is the format number, the kind (m mutex, r read-write, s semaphore, e election, l latch), the mode (x excludes
// all others, o all but those of its owner, s shares), a colon, and 128 random bits in 22 characters. Every member of the set carries one, so that
// another kind or format is seen by the same read, refused and left as it was.
//
//	member              score
//	l ticket            the end of a waiter's life in server milliseconds, negative; none while it is 18 s from its place
//	w, c                of a semaphore: the weight of all holds, its capacity; negative
//	h ticket token payload    a hold: its end in server milliseconds; + 1e13 when it shares
//	q ticket payload          a waiter: its place in line: the server's microseconds when it joined, or one more than the last
//
// What is negative is looked up by name only. Of the rest, one range holds the members of one sort: "who holds", "who is
// first in line" and "how many stand before me" are each one command, and the cost of none grows with the length of
// the line.
//
// A payload is "claim:block:length:length:" and the channel, the owner and the label themselves: what the hand-over
// must know of a waiter, and what others read of a holder. Claim is milliseconds, block the number of tokens that a
// grant reserves. A payload never changes while its ticket lives, so that client and server name members alike.
//
// # Handing over
//
// Who gives back, and who asks and finds a hold's time over, lets the first in line in: the waiter becomes a hold whose
// end is its claim, and is told alone, on its process's channel. PUBLISH says whether anybody heard: a waiter
// whose process does not listen (it crashed, or its connection broke) is passed over and keeps its place. One
// whose life is over is taken out.
//
// # Time
//
// Scripts ask the server for its time and compare it with times that the server gave. A request that may win something
// carries a "not after" in server time, from the bounds that earlier answers gave (see clock.go); before the first
// answer the client asks for the time alone.
//
// # Scripts
//
// Each is a file with its contract at the top; "--@include" joins what several share. Comments and
// indentation are cut before a script is sent. Digests are constants, checked by a test, so that no SHA-1 is
// computed at run time (it is refused under FIPS rules).
package native
