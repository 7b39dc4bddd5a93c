// Package quorum keeps names on N independent masters, of which a majority decides: RedLock, with
// what its critics asked for. The masters know nothing of each other. Clients agree on everything
// through them. Package wire carries the requests.
//
// # Keys, at each node
//
// All keys lie in one slot, and every key that a script touches is in its KEYS. Package native
// makes their tag of no name: there "%" is always followed by "25" or "7D". So no lock that a
// client of one node keeps there shares a key with them, whatever its name.
//
//	PREFIX:{%quorum}          facts of the node: since when it remembers, whether it counts, the
//	                          largest tokens, what its server is known by
//	PREFIX:{%quorum}:NAME     the holds of a name, and what remains of holds: a hash, a field each
//	PREFIX:{%quorum}+NAME     who waits for it, by the time since which they wait; "!": when a
//	                          writer last asked, which keeps new readers out
//	PREFIX:{%quorum}=NAME     who watches it
//	PREFIX:{%quorum}ready     never written: see Probe of package wire
//	PREFIX:{%quorum}@PROCESS  no key but a channel: messages to one client
//
// # The state of a name, at each node
//
//	field    value
//	id       a hold: mode (3), end (13, ms), first and last token (16 each), round (16), payload
//	"-" id   the remainder of a hold that was broken: what the hold was, with extras
//	REST x   what min holds leave of holds that exclude; REST s: of holds that share
//
// A mode is the format number, the kind (m mutex, r read-write, e election), and "x" or "s": the
// hold excludes, or shares. A payload is "ttl:length:length:length:", the channel, the owner, the
// extras and the label, as in package native. The TTL is in milliseconds; an "f" behind it says
// that the hold is fixed. The channel is that of the holder's process, or empty if no message
// reaches it. An extra is "name:length:value", and readers skip the names that they do not know.
// The hold of a ticket with a trace has the extra "trace". The extras of a remainder begin with
// these two:
//
//	by    the label of the caller that broke the hold
//	of    the ids of the Breaks that ended the hold here; none if it ended for good
//
// A message is the format number, what it says, the id of the ticket that it says it to, and the
// rest:
//
//	3N ID AFTER   the ticket is to ask after so many ms, or something that it watches has changed
//	3R ID         its hold was broken at this node
//
// A client that meets a value of another format says so and touches nothing, also if the time of
// the value is over. It does not wake waiters of another format, and drops messages of one.
//
// # Questions
//
// Each operation is a question to all nodes, or several: Ask, Downgrade, Free, Renew, Look,
// Unwatch, Break, Inspect, Probe, Status, and those that nodes are asked about themselves. A fanOut
// is one question on its way: it goes to all nodes at the same time, and one goroutine collects a
// reply of each. The replies so far are a tally, which counts them. A rule of the operation judges
// the tally after each reply:
//
//	open      another reply may change the result: wait for it
//	decided   no reply can: the caller is answered at once
//	hopeless  there can be no majority: an Ask, a Free, a Probe and the meeting of nodes wait up to
//	          50 ms for the nodes that live, as the error tells what each node said; the other
//	          operations wait for all replies
//	ended     the caller's context ended, or all have replied: the last replies decide
//
// The caller owns a question until it is answered. What it leaves at the nodes, it hands to
// goroutines that Close waits for: replies that come later (below, at each operation), and
// cleanups, for which each node has a goroutine of its own. No goroutine waits for a caller that
// has left.
//
// Replies of nodes that do not count are read, and no yes. They are a no where the no is safe: a
// node that knows of another's hold keeps us out though it does not count. A failure is neither. An
// error names each node: what it said, why it does not count, or that it did not answer in time.
//
// # Asking
//
// An Ask is one or more rounds. A round sends the same script to all nodes in parallel, and returns
// as soon as it is decided. So a dead or slow minority costs no time. A round comes to one of
// these:
//
//	held           a majority holds for us, and accepted our token
//	token refused  a majority holds for us, and some had seen a larger token: at once another round,
//	               with a larger one, if the pace of the caller allows it
//	busy           one other holds at a majority, or may hold at nodes that do not answer
//	split          nobody has a majority: all is given back, and there is another round after a pause
//	               that grows with the number of contenders, and has no lower bound but the pace of the
//	               caller; when the time is over the engine is told "busy", for a short while
//	left           what the Ask gave back goes to a waiter; the engine is told "busy"
//	refused        the ticket can never hold: its owner shares, its hold was broken, or the key is
//	               foreign
//	no majority    fewer nodes answer than a majority, of those that count: a Failure with what each
//	               said, never "busy"
//
// Answers that come after the decision are handled in the background. If the Ask failed, what they
// won is given back. If an answer never comes, it is given back once the request can take effect no
// more: its "not after", in that node's own time, sees to that.
//
// Requests of one client to one node may overtake each other on a second connection, so some wait:
//
//   - A release of an id waits until all asks of that id to that node are answered. Otherwise it
//     could overtake one and leave its hold behind.
//   - An ask waits at each node for the releases of its name that this client has on their way.
//     Otherwise it would find its own hold there.
//
// A round has a number. A release of a round leaves the holds of later rounds alone, and the holds
// that were renewed, downgraded or set again since. A node that does not answer is asked for one
// thing at a time. The release of a holder or a waiter is kept for the life of a place, 18 s; that
// of a failed round for a TTL after the deadline of the Ask. A hold or a place at a node that was
// away for longer ends there with its time.
//
// A caller that is kept out is told who holds, with the token that a majority of the answers names,
// or 0 if there is none. If only remainders keep it out, it is told nobody, and why one of them is
// there.
//
// A Look tells who holds at a majority, with the token that a majority accepted. It gives that
// token as the time since when, so all callers that look see the same. While no token is agreed on
// it looks again, up to twice. Then the hold is told if the nodes that do not answer may have
// accepted its largest token, and nobody if they cannot.
//
// An Inspect asks all nodes, and changes nothing at any of them: neither what they know of
// themselves, nor what is over. So it does not tell a node that its memory begins anew (below), but
// says why the node does not count. A hold is told if a majority knows it, or may know it with the
// nodes that do not count or do not answer. It is told as a hold while a majority can prolong it,
// and else as its remainder. It ends when fewer than a majority keep it.
//
// A writer that waits for readers keeps new ones out, at each node, for half a second after each of
// its asks, and no longer than a writer is known to wait there. A reader whose owner shares the
// name at that node is not kept out.
//
// A holder may be known as a waiter at a minority of nodes, where another kept it out. Its release
// takes that back, or a request a second after the deadline of the Ask.
//
// A free name wakes the waiter that waits longest: each node tells it, and it asks when a majority
// of nodes has said so, or 10 ms after the first. The next two are told to ask 25 and 75 ms later,
// should the first not come. No order is promised. Where only remainders are left, the node tells
// the waiters when the last of them ends, and tells them again if a release ends it before.
//
// # Breaking
//
// A Break asks all nodes to end the hold that has a token, whatever its kind if that is not known,
// and returns as soon as a majority has decided. A node that knows the hold makes a remainder of
// it, with the end that it had, and tells the holder's channel. The remainder keeps the id of the
// Break. The answers come to one of these:
//
//	done          the hold is broken at a majority of the nodes that count, by this Break or others
//	no such hold  a majority of them does not know the hold: it is nobody's lease
//	failed        neither is certain: an error with what each node said
//
// Unless it is done, the Break is taken back at each node where it ended the hold or may yet end
// it: its id is taken out of the remainder. If no other id is left there, the remainder is the hold
// again, as it was. So taking one Break back does not undo another. An answer that never comes is
// taken back once the request can take effect no more, as that of an Ask. A node that does not
// answer for the life of a place (18 s) keeps the remainder to its end.
//
// A remainder excludes others at its node as the hold did. No request prolongs a remainder or
// enters it. Beside a hold of its own owner a caller enters only if all remainders there are of
// that owner too. An Ask with the id of a remainder is told that the hold was broken, leaves no
// place, and its client gives the ticket up. A remainder ends in four ways:
//
//  1. The holder's release ends it, or shortens it to the end of the min hold.
//  2. Its time ends it.
//  3. The Break is taken back.
//  4. The release of an Ask that failed ends it, by the rounds as above: that hold was nobody's
//     lease.
//
// A renewal of the hold is answered "broken" where the node has its remainder. A majority of yes is
// a yes, whatever a minority says. Where a majority of yes is impossible, and a node says "broken",
// the hold is broken. Then nothing is given back yet: the engine releases the hold when the
// holder's code has stopped. After that, neither a Break nor taking one back finds anything. The
// remainder of a min hold has no ids, so it stays, too. A node that has the remainder is never told
// of the hold again, neither by a renewal nor by a repair of tokens that is on its way.
//
// A release says that the hold is given back if a majority had it. Otherwise it says that the hold
// was broken if any node says so, also where nodes do not answer. The release has ended the
// remainder at that node, so a second release would find nothing there and could take the hold for
// given back.
//
// A process that listens hears of it from each node. It believes no message: its engine asks the
// nodes. The engine is told when a majority has sent the message, and once more 100 ms after the
// first message, because messages can be lost. The second also covers a question that went out too
// early.
//
// A Break that failed may have told the holder all the same, as both ask the nodes at different
// times. Then the holder has lost its lease, and gives it back. A hold cannot be broken by force:
// the nodes end it one after the other, while others ask.
//
// Claim: once a Break is done, no renewal that is sent later is answered yes. For a majority M has
// the remainder. A node of M does not say yes while it has it. It does not say yes afterwards
// either: a renewal makes no hold, a repair follows a yes, and each majority that counts has a node
// of M. A node leaves M only if it forgets, and then it does not count: taking back another Break
// leaves the id of this one. A renewal that was sent before has given the hold an end at the nodes
// that said yes, and their remainders have that end.
//
// # Trust
//
// The engine trusts a hold until "moment of the sending + TTL - margin", on the monotonic clock.
// That is the validity TTL - elapsed - drift of the RedLock documents, as every node counts the TTL
// from a later moment. So the majority that answered keeps the hold for at least as long as it is
// trusted. This needs that the clocks of nodes run at rates that differ from ours by less than one
// in a hundred, and that none of them is set forward unseen.
//
// A renewal goes to all nodes. A majority of yes is a yes. Where a majority cannot be reached it is
// a no, and the hold is taken back everywhere. Between these it is an error, and trust runs on to
// its end. After a yes, the nodes that do not know the hold are told of it, unless they know
// another's, or its remainder, or it was given back meanwhile. Nodes that refused its tokens are
// told those. A node that missed a downgrade shares with the next renewal.
//
// # Nodes that forgot
//
// A node's facts begin with the time of its first use. They are lost with its data, all or nothing.
// So a node that was emptied has a new birth mark. A node that restarts from a snapshot has an old
// mark and old data. But it has no scripts, so the first client that asks it finds out, before
// anything else runs there. That client makes the mark anew, unless the server keeps an append-only
// file (node.lua). Scripts name the prefix, so each prefix finds out for itself. Their digests are
// constants for the usual prefix, and asked for under another.
//
// A node counts from the moment that some client has written so into its facts. A client does that
// when
//
//  1. the node's memory began at least the longest TTL ago that any client may use. So no hold that
//     it may have forgotten is trusted any more. Every ask tells the node the longest TTL of its
//     client, so a node that knows a hold knows that too. And
//  2. a majority of nodes that count has been asked for the longest TTL and for the largest token
//     that they know, which goes into the facts as a floor.
//
// Nodes that do not count are asked, told and freed like all others; their votes are not counted.
// So many may have forgotten that those that count can be no majority, as at the very beginning.
// Then nobody can be asked in 2. In that case those that forgot count from one moment on, when so
// many of them are old enough, and the floor is the time of the clock in the middle. A node that
// does not answer is not one that forgot: while a majority of counting nodes may exist and does not
// answer, no other begins to count.
//
// # One server at two nodes
//
// Nodes are one server if their addresses lead there, through a proxy or by another name. Then one
// server would be a majority of three, and decide alone. So each answer names its server: by the
// run id, which INFO tells, or else by a random text that the first client wrote into the facts. A
// start makes a new one, before anything else runs there. So a copy of another server's data is no
// such server; and two databases of one server are.
//
// A server counts at the node where a client saw it first. At other nodes the answers are read and
// not counted, in whatever tally, until they name a server that no other node has. Such a node is
// asked for facts instead of a hold: its server accepts a token once. If the nodes that are other
// servers cannot be a majority, waiting cures nothing, and each call fails at once (SameServer). A
// node that is another one is told by Probe and Status, and once to the logger.
//
// An answer after a DEL of the facts names no server, until a client that meets the node writes the
// name. It is taken for one of the server that answered before.
//
// # Clocks that are set forward
//
// A node whose clock is set forward ends holds early. That is to forget them, with all marks in
// place. Clients see it: an answer cannot show more than an earlier one did and the time since that
// was asked for. A node whose answer shows a tenth of a second more, and a hundredth of that time,
// does not count. It is told to begin its memory anew, so it counts for nobody until whatever it
// ended is over.
//
// But our own clock may have stood still, as that of a virtual machine does while it is moved. That
// is what happened if more nodes seem to be ahead by the same than in time. Then nothing is
// concluded, and all begins anew with the answers to what is asked for from then on
// (clockcheck.go). As long as fewer than a majority say which it is, what seems to be ahead does
// not count.
//
// A memory may have begun since the earlier answer. Then it was told to begin by others that saw
// the step, or it is that of another machine at the node's address. Only what makes it older than
// that is held against the node. An answer that is overtaken by the next while the clock is set
// back looks as if the clock was set forward. Then the node does not count for that time, although
// it ended nothing.
//
// A node that does not count, and whose clock is set back, would seem to be born in the future: its
// memory begins then.
//
// # Exclusion
//
// Claim: no two holds that exclude each other are trusted at one moment.
//
// Let A and B be trusted at a moment t, by their last confirmed rounds or renewals, which were sent
// at a and b. Each was confirmed by a majority of nodes that counted when they answered, so some
// node n confirmed both. Say that n confirmed A first, at a' > a, with an end not before a' + TTL
// by n's clock, which is later than the end of trust. When n confirmed B it knew neither A's hold
// nor a remainder of it, or it would have said busy. So in between n ended A's hold, or its
// remainder, or forgot it.
//
//  1. A's client gave the hold back: then A is not trusted at t, as the engine ends trust before it
//     sends a Free, and what gives a round back touches neither the hold of a later one, nor one
//     that was confirmed anew since.
//  2. Its time was over: then trust was over before.
//  3. A Break made it a remainder, and n ended that. The remainder has the end of the hold, so if
//     its time was over, trust was over before. If A's release ended it, A's engine had ended trust
//     before it sent the release. The release of a failed Ask leaves a remainder alone if its hold
//     was confirmed since, as in 1.
//  4. The Break was taken back: then A's hold is there again, with the end that it had, and we are
//     at the beginning. A Break makes no hold.
//  5. n forgot it: then n did not count at b', as a' + TTL was not over. For it counts again, if a
//     majority did not forget, after a majority R of other nodes that count was asked for the
//     longest TTL; R has a node that confirmed A, too, and knows it from A's ask; and that node has
//     not forgotten it and come to count again before n. Contradiction.
//
// Case 3 needs no majority: a remainder keeps others out at each node where a Break ended the hold,
// and nowhere is anything else changed. So it does not matter whether that was agreed on, nor in
// which order nodes hear of it. The remainder lets in nobody that the hold kept out, and ends when
// the hold would have ended; taking the Break back changes neither. So it does not matter either
// whether a Break comes late, twice, or after it was taken back. A node that restarts has the
// remainder with its ids, or neither, or what it had before; unless it wrote every change down, it
// does not count.
//
// A remainder at a minority does no harm. It excludes no more callers than the hold did, and no
// longer. A's renewals are confirmed by the other nodes. When the Break is taken back, A's hold is
// there again. If the client that sent it is gone, the remainder has the end that A's hold had; the
// next renewal of A then sets A's hold there again. Until then A has one node less to lose.
//
// # Tokens
//
// Claim: when one hold was confirmed before the Ask of another was sent, all of its tokens are
// smaller; and of two holds that exclude each other, the later has the larger tokens.
//
// Each node keeps the largest token T that it accepted, per bucket of names. It accepts a proposal
// (first to last) only if first > T, in the same step in which it places or finds the hold. Then T
// becomes last. A hold is confirmed only by a round in which a majority that counts accepted one
// and the same proposal. Take two confirmed holds A and B of a name, and let n be a node that
// accepted both proposals and counted for both.
//
// If n did not forget in between, it accepted them one after the other, and the second is larger
// than all of the first. Which was first? If A was confirmed before B asked, A's. Otherwise the two
// exclude each other, and A is trusted before B. Then n accepted each of them while it kept the
// hold, and it kept one after the other. Had it kept B first, B's hold there would have ended
// before A's round was answered. It would have ended by a Free, which is sent only when B is given
// up, or by its time, when B's trust was over. So B would not be the later to be trusted.
//
// If n forgot in between, it counted again for B only after a majority R of counting nodes without
// n was asked for its largest T. R and the majority that accepted A have a node in common, which is
// not n. So T of that node, and with it n's floor, is at least A's last token, and B's first is
// larger. Where that node forgot as well, it was given its floor in the same way before it counted.
// This ends when a majority forgot at one time: then the tokens are as large as the clocks say, and
// the longest TTL is that of the clients that have asked since.
//
// A proposal is the larger of two numbers: what the client has heard of, plus one, and the nodes'
// time in microseconds, of which the median counts. So it is nearly always accepted in the first
// round, and tokens grow with time where all memory is lost. Time is not needed otherwise. Tokens
// that the engine passes on inside a process are those of the accepted proposal, up to its last.
//
// # What is not guaranteed
//
// A node whose clock is set forward counts for clients that never met it before, until a client
// that did is answered: at the latest the holder, with its next renewal. It counts for all clients
// if the step is too small to be seen, or the same as that of most that answer at one time.
//
// A hold survives a node that forgot in this way while it is at more nodes than a majority. It
// mostly is: all are asked, and renewals repair. It is not when other nodes are down at the same
// time.
//
// Evicted keys (a maxmemory-policy other than noeviction) are forgotten without a trace. A node
// with replicas that fails over forgets as much as they lag behind, and keeps its marks: let a node
// have none. (Before version 7, a node that has had a replica keeps scripts in its snapshots, so
// its restart is not seen.)
//
// An append-only file that is written every second may lack the last second after the machine lost
// its power. It may lack more after a server was killed while its disk was slow. Write it always,
// or use none. An older file that somebody puts back, or the snapshot of a machine, is an old
// memory with an old mark. Empty the node then.
//
// Some machines set their clock forward while they start. If a node's clock is set forward after
// its memory began, the node seems to be older than it is, to clients that have not met it since it
// began.
package quorum
