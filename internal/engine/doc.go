// Package engine decides which goroutine of this process waits and which holds. It has the queues
// of goroutines, the leases, the watchdog and trust. It speaks to the servers through package
// protocol alone. It also runs on a protocol without a queue.
//
// # Glossary
//
// These are the words of the whole module. Leader and queue have a second meaning: the leader of
// an election is its holder, and a pool is the queue of its goroutines.
//
//	name           what is locked, as users write it; it has one kind (mutex, rwmutex, semaphore,
//	               latch, election)
//	attempt        one try to hold a name, from its first request until it holds or is abandoned
//	ticket         the identity of an attempt at the server. What it says never changes, but an
//	               attempt may change to another one. A holdfast.Ticket is the text with which
//	               another process goes on with a ticket
//	hold           the right of one ticket to a name, as the server keeps it
//	tenure         the time that one local holder has a hold; a hold passes from tenure to tenure
//	entry          one lease on a hold; reentry adds one
//	lease          what a caller gets: one entry into one tenure
//	binding        a lease bound to a context: under it the names of both are entered
//	trust          the time in which a process may act on its hold, by its own clocks
//	margin         how much earlier trust ends than the hold: TTL/100 + 5 ms
//	grant          the passage of a ticket from waiting to holding
//	hand-over      a grant because another hold ended; a message tells the waiter
//	delivery       what a pool gives a waiting goroutine, without a request: a lease, or the lead
//	retained       of a hold: it stays with the process although nobody uses it
//	recall         the message that another asks for a hold that may be retained
//	yield          to ask for the next goroutine of a pool and give the old hold back in one request
//	claim          the time in which a hand-over must be taken up
//	queue          the tickets that wait at the server, in order
//	place          the position of one ticket in the server's queue
//	kept place     one that stays while no process waits with its ticket, for a given time
//	pool           the goroutines of this process that wait for one lock
//	leader         the goroutine of a pool that asks the server
//	slice          the 5 ms (passFor) in which goroutines of one process pass a hold on, or join it
//	waiter         a goroutine that waits for a hold
//	watcher        a goroutine that waits for a state of a name and does not want to hold it
//	detached       of a hold: it has left its process; the same one or another may attach it
//	remainder      what is left of a hold that was broken, or that has a min hold: it excludes
//	               others
//	broken         of a hold: an operator ended it
//	evicted        of a ticket: an operator took it out of the queue
//	evidence       the leases under which a ticket waits, as its place in the queue tells
//	walk           a look for a deadlock, from a waiter along the evidence of others
//	fencing token  a number that grows with every grant of a name; storage refuses a smaller one
//	channel        where a server publishes the messages to one process
//	nudge          a message that it is time to ask or to look
//	sign of life   what shows the server that a waiter lives: another ask
//	gap            a time in which messages may have been missed
//	cleanup        the requests in the background that remove what a ticket may have left
//	batch          the requests of many goroutines that go to one node together
//	node           one server; of a cluster, one with slots; of a quorum, one of the masters
//	slot           one of the 16384 parts of a cluster's keys; all keys of a name lie in one
//	quorum         a majority of independent masters
//	tally          the count of the answers of a quorum's nodes to one request
//
// # Who owns what
//
//	Lock          a name and how it is held: no state
//	attempt       run by one goroutine at a time
//	hold          from the grant until it is given back or lost
//	localTenure   a hold in the hands of one local holder; one after the other
//	Lease         one entry into a tenure: a hold is given back with its last entry
//	pool          the waiting goroutines, and their leader or their hold; of readers, both
//	watchdog      all holds, and one timer for the first that is due
//	subscription  the one subscription of the client, while a goroutine waits, and 10 s longer; a
//	              kept place has its own
//	holdListener  keeps the subscription open for goroutines that wait for a hold of this process
//	cleanup       goroutines that remove what was given up
//	eventQueue    what the observer is to be told in the background
//
// One mutex guards all of it except the subscription and the eventQueue, which have a mutex each.
// None is held while a request is under way or while a caller's code runs, except the methods of a
// caller's context. A goroutine that holds the first one queues such an effect, and Unlock runs the
// effect (guard).
//
// # An attempt
//
//	        ask                     held
//	NEW --------> unknown outcome --------------------------> HELD
//	          ^     |  |  \ queued                              ^
//	          |     |  |   v                                    | trusted
//	  timer,  |     |  |  KNOWN ---- message of a grant --------+
//	 nudge,   |     |  |   |    \---- not trusted: ask
//	   gap    +-----+--|---+
//	                   | refused, or ctx ended
//	                   v
//	               ABANDONED ---- free, until that is certain ----> (end)
//
// An attempt is known once the server has something of its ticket: a place, or a hold that is not
// trusted. It is new again if an answer says otherwise. An attempt that holds or was abandoned
// stays so. An unknown outcome is no state: the attempt is new or known as before, and
// mayApplyUntil says until when the request may take effect. Only attempt.to changes the state, and
// it refuses every other transition.
//
// The ticket stays the same from the first ask to the last free. So a request that arrives twice
// changes nothing, and the next ask finds what an ask without an answer did. An attempt gets a new
// ticket after a Resize, after the refusal of a subscription, if its hold was broken before it was
// taken up, and if a lease ended that its ticket names. After a failure that may pass (no
// answer, no connection, loading, out of memory) an attempt asks again until its caller's context
// ends: after 40 ms at first, and a second at last.
//
// An answer may say that the ticket was evicted. Then the wait ends with a *WaitFailure, whose Err
// is the *protocol.Evicted. The goroutine that runs the attempt gets that error. The next one of
// its pool leads with a new ticket, which joins at the end of the queue. An answer may also say
// that the hold of the ticket was broken before this process took it up. The attempt gives back
// what is left of that hold, and asks with a new ticket. A kept place has one ticket, so its wait
// ends.
//
// An attempt is abandoned, too, when its outcome is unknown. Every ask carries the moment after
// which it takes no effect. A free that is sent later, and answered, is therefore the last word. A
// hand-over to the ticket meanwhile is given back at once.
//
// A waiter asks every 5 s (+-20 %). That is its sign of life, and it finds what messages lost. A
// waiter asks sooner when the holder's known time is over; waiters behind the first ask a little
// later each. It also asks when a message says so, and at once after the subscription was gone and
// is back. A message that comes before the answer that it belongs to waits for that answer.
//
// Whatever is answered, and whatever messages come, a caller keeps a pace (protocol.Pace). Ten of
// its requests may follow each other at once; from then on there is one each 100 ms, or a third of
// the claim if that is less. So a hand-over to a waiter that no message reaches is found within its
// claim. A hand-over by message needs no request, and is taken at once. The pace belongs to the
// attempt, so it passes to the next leader of a pool; a watcher, a cleanup and a group that begins
// anew have one, too. Only polling has the interval that its caller chose.
//
// # A hold
//
//	      DETACHED <-------------------------------+
//	         ^     refused                         |
//	         |  +---------------+                  |
//	         |  v               |     applied      |
//	(grant) HELD --------> DOWNGRADING --------> SHARING
//	         |                  |                   |
//	         +------------------+-------------------+
//	         |                  |                   |
//	         v                  v                   v
//	     RELEASING            LOST ------------> CLEARED
//
// A hold is held as its lock asked for it. It is live while it is held, retained, downgrading or
// sharing. A held one may become retained, and held again: see below. Its last entry, a yield or
// Close makes it releasing. Detach makes it detached; an attached hold is a
// new one, and is held. A hold is lost when trust ends, or when an operator broke it; the server
// may still keep it. It is cleared once the server says that nothing is left,
// or once its cleanup is scheduled. The release of the last lease on a lost hold schedules that.
// Only hold.to changes the state, and it refuses every other transition.
//
// # A pool
//
// At most one ticket of a pool stands in the server's queue: that of its leader, which runs the
// attempt in its own goroutine. A leader that gives up hands the attempt, with its place, to the
// next goroutine. A hold passes from goroutine to goroutine in order, without a request, for 5 ms,
// while tokens are reserved and trust is left. Then it is yielded: the next goroutine asks with a
// new ticket, and gives the old hold back in the same request. That request hands the name on if
// another process waits, and keeps it if none does. Callers share a pool only if nothing but the
// goroutine differs. A lease with times of its own, with an owner, or in strict order asks the
// server itself.
//
// # Retained holds
//
//	         last entry over, nobody here waits,
//	         no other process has asked
//	HELD ----------------------------------------> RETAINED --------> RELEASING
//	  ^                                               |      recall, idle time over,
//	  +-----------------------------------------------+      too many, Close
//	         entry, with trust and with the next token
//
// A hold of a lock with Options.Retain may stay with its process while nobody uses it, so that the
// next entry is no request. A goroutine enters it as the next of a pool does: while
// trust is left, and with the next token of the block that its grant reserved. If the block is used
// up or little trust is left, the goroutine leads, and gives the old hold back in the request in
// which it asks, as in a yield. Readers join the hold, with the token that it has. A token of its
// block may be smaller than that of a reader of another process who came later.
//
// The ticket of such a hold says that it may be retained (protocol.Ticket.Retain). Each ask of
// another ticket that the hold keeps out has the server send a recall, in the same round trip. A
// hold that nobody uses is given back at once. A hold in use is trusted as before. It is not
// retained after its present use, and passes to no other goroutine here.
//
//	recalled before            the server may have sent the recall before this process knew of the
//	the grant is known         grant: then the hold is not retained
//	granted after waiting      others may wait behind it, who asked before: it is not retained
//	recall lost, or a gap      a gap counts as a recall of all. Otherwise the waiter asks again when
//	                           the time of the hold that it knows of is over
//	this process died, or      others wait for the rest of the hold's TTL, which is at most RetainTTL
//	stands still
//	trust ends                 a loss of nobody, if nobody uses it; the server may have renewed it,
//	                           so it is given back
//	a Break                    the same
//
// The messages must come while any hold may be retained. So the subscription is opened before its
// first ask, and stays open. Where it is refused, nothing is retained.
//
// A name is retained from its second lock on that comes soon after the use before (Engine.noteUse).
// After a recall it is not for a while, which doubles with each. So two processes that take turns
// pay for few recalls. A call that does not wait asks again, for 31 ms at most, while the holder
// retains: the process that does not use its hold gives it back in that time.
//
// A small world of each of these is searched to its end (proof/explore). Not retained are holds
// with a fixed end, a min hold or a max hold, those of an owner, of strict order, of polling, and
// those that take part in the search for deadlocks. A quorum cannot recall.
//
// # Wanted leases
//
// The same message tells the holder of a lease that others want its name (Lease.Wanted), and
// nothing is taken from it. With Options.Wanted its ticket says so, and each ask that the hold
// keeps out sends the message. Without, an Engine.Tell does. The goroutines of this process are
// known without one. Those that stood behind the ticket when it won asked before: one look at the
// server finds them. A message that is lost costs the time until the waiter asks again.
//
// A transfer is a release that names the next holder (Engine.resign). Before it, the waiter has to
// ask, so that nothing goes to a process that is gone. The leases end before the request is sent,
// as in each release.
//
// # Readers
//
// A hold that shares is not passed on but joined. It has one tenure, with the leases of all readers
// that are in, and one token. While the hold is younger than 5 ms, a reader of its pool enters it
// without a request. After that the next reader leads: it asks with a new ticket, so that the
// server puts it behind a writer that waits, of this process or another. Its hold is the one that
// is joined from then on. Readers that come while their leader waits wait with it, and enter
// together.
//
// A reader that waits when a hold becomes one to join, by a grant or a downgrade, is in. A leader
// may learn of it late, when it has the answer to a request of its own. An older hold lives, and is
// renewed, until its last reader has left. So many readers cost what one does, and one more hold a
// slice. A writer waits for the readers that were in when it came, and for at most a slice of a
// process's later ones.
//
// # Permits
//
// A semaphore's holds share, as far as the permits go; each acquire is a hold of its own. One
// goroutine of a pool (same permits, same weight) stands in the server's queue. When it is in, the
// next one leads, with a ticket of its own. Nothing passes inside the process, as the next ticket
// in the queue may be another process's.
//
// The payload of a ticket says how many permits the name has. A Resize leaves the tickets alone
// that hold or wait. The server refuses a new ticket with the old number and names the new number.
// If the attempt, or one that its caller waited behind, was accepted with the old number before,
// then the name was resized. The attempt goes on with a new ticket and the new number, and so do
// the attempts after it. A new caller with the old number is refused: it cannot be told from one
// whose number was never right. A caller that polls goes on likewise once it was answered that
// others hold.
//
// # Entries
//
// A caller under the context of a lease of the same name enters its tenure without a request, and
// gets an entry. The entry excludes or reads as the caller asked: read in read, write in write,
// read in write. Write is refused where only readers are in, as two callers that did that would
// wait for each other for ever. A semaphore is not entered: each acquire takes permits.
//
// A context carries its innermost lease, and that lease the context that it was taken with. A
// context that a lease was bound to has two sides: the lease with its outer leases, and those that
// the context carried before. The first live lease of the name is entered, of the lease's side
// first. Each binding is looked at once, as the ways to one can double with each lease.
//
// The last entry that excludes others may be released or downgraded while others read on. Then the
// hold is downgraded at the server. In one request it becomes one that shares, with the same
// ticket, tokens and what is left of its times, and readers at the head of the queue enter. Readers
// of this process join it for a slice; a leader that waits joins too.
//
// A downgrade waits for the renewal under way, and no renewal is sent beside it: its answer
// prolongs the hold. Without an answer it is sent again, with the same ticket, until one comes or
// trust ends. It goes on in the background when its caller's context is over. Nobody here takes the
// hold for exclusive meanwhile, so it does not matter what the server takes it for. A release that
// crosses a downgrade frees both modes, until the request can take no effect any more.
//
// # Kept places
//
//	          join           wait           held
//	(nothing) ----> KEPT <----------> WAITING ----> HELD
//	                 |     wait ends
//	                 +-- keep is over ---> (gone)
//
// A ticket with a kept place joins the queue once, with Lock.Place. Engine.AttachWait waits with
// it, in one process after the other, and never joins. So a ticket that was used up is gone, and
// not a new one. The ticket says all that the payload is made of, so each process names the place
// and the hold alike.
//
// A hand-over to a kept place is an offer, which leaves the place as it is. It is never trusted by
// its message: the attempt asks, and that takes it up. There is one offer for each ask. If the host
// of the process is silent, an offer costs the others one claim, and the time until the next waiter
// asks. It costs the ticket nothing. If no message ever granted, each live waiter behind would get
// in before the ticket asks, and its place would be worth nothing.
//
// The end of ctx does not cut a request off. After it the attempt sends a last one, which says that
// nobody waits. That request finds what was granted meanwhile: then AttachWait returns the lease,
// although ctx is over. From then on the server makes no offer, so it does not matter when it
// notices the end of the subscription, which is the wait's own. Then the place delays nobody. It
// lives for keep from that request on. In a wait the attempt asks three times in keep at least.
//
// If the last request has no answer, a hold may come of it, or of one offer more. The next wait
// finds that hold. If there is none, the hold ends with its TTL, and the ticket with it.
//
// Leases with an end of their own are refused a kept place: a process that goes on with the ticket
// does not know when an earlier one was granted the hold. A quorum has no queue, and so no kept
// places.
//
// # Watching
//
//	watcher   one goroutine that waits for a state of a name
//	Latch     a name that opens when as many have counted down as were set
//	Group     names that are held together
//
// A watcher looks. When it does not see what it waits for, it subscribes and looks again, under a
// ticket that the server nudges at the next change. The answer to that look has all earlier
// changes; a message tells of later ones. A message says only that it is time to look. All the
// same, a watcher looks every 5 s (+-20 %), which keeps its ticket known. It looks at once when the
// subscription was gone and is back, and twice a second while it cannot subscribe. So a missed
// message costs one such pause, never the wait. After a failure that may pass, a watcher looks
// again as an attempt asks again. A watcher that is done takes its ticket back, once, in the
// background. The server forgets the ticket by itself, too.
//
// Attempts and watchers wait in one loop (waitLoop). If the time of a wait is bounded
// (Options.Wait), it waits under a context of its own, whose cause is protocol.ErrWaitOver.
//
// # Latches
//
// Setting and counting down are one call each, with an id of its own. The call is sent again until
// an answer comes or its time, ReleaseTimeout, is over: the server takes an id once. Every request
// carries the moment after which it takes no effect, so a call that failed for good cannot count
// later.
//
// # Elections
//
// A leader is the holder of a Lock of kind 'e' in strict order. Leadership never passes inside a
// process, so a look at the server sees the present leader. Watching for leaders waits until the
// hold that is seen is another than the one that was reported last; a slow caller learns the
// latest, not each. Trouble looks at the watchdog. A hold whose last renewal failed, or whose trust
// is over, is a leader that may not be one for long.
//
// # Groups
//
//	    enter what ctx holds
//	            |
//	            v     all held
//	+-----> ask for all -------------------------------> LEASE
//	|           | some are busy, or they lie apart         ^
//	|           v                                          |
//	|   ask for all before the first that is busy,         |
//	|   and wait in queue for that one    none left, and   |
//	+-------------------------------------- none lost -----+
//	            | ctx ended, or one was lost
//	            v
//	    all are given back; after a loss, from the start
//
// Each name counts once. All callers wait in the order of the names, so none waits for a name while
// it holds a later one: there is no cycle. Asking for many at once never waits, so it cannot be
// part of a cycle. Names that ctx's lease holds already are entered before, outside of that order.
// As with any lock, a caller that holds one and waits for another must take care. A group's lease
// is its parts', each with its own token; they share one context.
//
// # Deadlocks
//
// A caller with Options.DeadlockCheck may wait under leases: those that its ctx carries, and the
// parts that its group holds already. Its place in the queue then names them: the evidence of
// package deadlock, which must be true while the ticket lives:
//
//   - The caller asks the server itself, outside of the pools, so its attempt is never passed on.
//   - A hold that is named in evidence is not passed on in its pool. So its ticket ends with the
//     lease, or
//   - if the lease ends while others keep the hold (entries, readers, the process that attaches
//     it), the attempt goes on with a new ticket, which does not name it. It joins the queue anew.
//
// Options.Under adds holds of other clients, which are looked up by their tokens before the first
// request. They are evidence too: of a program that holds names and waits for its child. They are
// told as long as the ticket lives, and a hold that ended is not found. Without DeadlockCheck the
// waiter tells them and looks for nothing.
//
// The waiter looks for a cycle after a TTL, a minute at most, and then ever less often, down to
// once a minute. Where one is suspected, it looks again after the time in which all members ask.
// The wait of the victim ends with a *WaitFailure and the *deadlock.Cycle, and its attempt is
// abandoned as any other.
//
// # Events
//
// A call is told of by one goroutine, that of its caller: that it waits, once, and how it ended
// (call.end), after the hold of its lease is watched. So an observer that is slow, or panics,
// delays its own caller alone. The end of a lease is told by the release of its last entry, or in
// the background if it is lost or Close gives it back. The observer is told of the end only if it
// was told that the lease began (Lease.told). A lease that was handed to a caller that gave up is
// therefore no news. Neither is a reentry: it belongs to the outermost lease under whose context it
// entered, and the last of these leases that is released ends them all for the observer.
//
// Events in the background queue up for one goroutine (eventQueue), as effects after those that end
// contexts. A renewal tells how much trust was left, which shows whether renewals come in time. Of
// a claim little is left, however well all is: so its renewal is told as Confirmed.
//
// A slow report (slow.go) belongs to one call that may wait, and then to the lease that the call
// got. The end of the call, or what tells the observer that the lease ended, ends the report. Most
// reports end untold, so the stack of the caller is most of what they cost.
//
// # Questions about leases
//
// Where Config.Answer is set, the report of a call goes on with its lease, also if it is never told
// and also of an election: it has the stack that Stacks tells, of holds that are trusted and of no
// other. Answer runs while the client has holds, and up to 10 s longer. What is asked and answered
// there is no business of the engine: see package remote. Stacks holds the engine's mutex for a
// look at all holds, so its caller bounds how often it is called.
//
// # Trust
//
// A hold is trusted until
//
//	the moment the last confirmed request was sent + TTL - margin,   margin = TTL/100 + 5 ms
//
// It is not trusted past the end of its max hold, less the margin of that, as clocks drift apart
// for so long. The server set its expiry later than the request was sent. So the hold expires no
// earlier than the margin after trust ended, as long as the rates of the two clocks differ by less
// than one in a hundred. Trust is compared with both of this process's clocks (isPast): the
// monotonic one stands still while the machine sleeps, and the wall clock may be set. Whichever is
// ahead counts.
//
// A hand-over by message says: granted at server time g, for the claim. The attempt's last answer
// carried the server's time s, and was asked for at local time t. The server's clock showed s after
// t, so it showed g no earlier than t + (g - s), less a hundredth of g - s for drift. The hand-over
// is trusted until the claim after that moment, less the margin of the claim: claim/100 + 5 ms.
//
// A hand-over is trusted when at least half of the claim lies ahead, and when g is not later than
// our clock allows (otherwise the server's clock was set). Else the server is asked, which confirms
// or denies. A message for another ticket is ignored, and one that is older than the last answer
// is not trusted. So a hand-over that was under way while the process stood still is never taken
// for a lease.
//
// # Renewal
//
// A hold is renewed every third of the TTL, measured from the sending of the last confirmed
// renewal. After a hand-over the first renewal comes a tenth of the claim later: a holder that
// stays is soon trusted for more than the claim. Renewals that are due within TTL/24 go along in
// one round. Each TTL is a round of its own, and nodes are asked in parallel. A renewal without an
// answer is tried again after TTL/30, 250 ms at most (+-20 %), until trust ends. An answer that
// says "not yours" ends the lease at once. No renewal makes a hold, and a release waits for the
// renewal that is under way.
//
// # Extending
//
// A fixed hold (WithoutRenewal) is not renewed by the watchdog. Its holder prolongs it by Extend,
// with one renewal of the full TTL: the same request, within the same min hold and max hold. Trust
// counts from the sending of that request, as after a renewal, and no answer makes it shorter.
// Without an answer trust is as it was, and nothing is sent again: the caller decides whether its
// work still makes progress. The server may then keep the hold for longer than it is trusted.
//
// An Extend stands in the place of a renewal (hold.renewing), for as long as its request may take
// effect: no release, downgrade or other Extend runs beside it (extend.go).
//
// # A hold that is broken
//
// Break turns the hold of another process into a remainder (package protocol), which excludes all
// others as the hold did. The process learns of it by the answer to its next renewal. A process
// that listens gets a message first, and asks the server, as a message proves nothing. It ends the
// contexts of the leases at once. The remainder is given back when the code of the holder has
// stopped, and no message or answer says so. The code has stopped when all leases on the hold are
// released: each reentry, each reader of this process, and each part of a group. If they never are,
// the remainder ends with the hold's time.
//
// A broken hold is lost. So it is not passed on, entered or joined any more, and the waiters of its
// pool ask anew. No lease was made of a hold that was broken before its process took it up. Such a
// hold is given back as soon as an answer tells of it. The message of its grant may come after the
// Break, or its answer may: then the hold is trusted for its claim, or its TTL, as any other. Its
// remainder lasts at the server for the same time, and so nobody is let in. If the message of the
// Break came before the grant was taken, the attempt asks at once.
//
// A client that breaks a hold of its own ends it with the answer, and needs no message. It also
// asks at once about a waiter that it evicted, and about a ticket that it gave back. Goroutines
// that wait in a pool for a hold of this process ask nothing: the engine subscribes in their place
// (holdListener).
//
// A ForceBreak leaves nothing of the hold. The former holder is told in the same way, and finds
// that its hold is gone.
//
// # Detached leases
//
// Detach takes a hold out of the watchdog and ends its lease, without a request. The hold stays at
// the server until its time is over there. Detach returns all that another process needs to go on
// with it: how the lock is held, the ticket, the tokens, and what the protocol says of its origin.
// The server names a member of a set by its payload, which has the channel of the process that
// asked. So the ticket carries that channel along, and every request about it is the same in
// whichever process. A message that the hold was broken goes to that first process; the present
// one learns of it by its next renewal.
//
// Only a lease that is alone in its hold can leave, and no downgrade may be under way, as nobody
// knows yet what the server has. A renewal under way is harmless: no renewal makes a hold. An ask
// that may still arrive is not, so Detach waits until it takes no effect any more.
//
// Attach sends one renewal, and trust counts from its sending, as with any other. The hold is not
// passed on and not joined: another process may have the same ticket, and would draw the same
// tokens. Times count from the grant, by the server's clock. The end of a max hold, and that of a
// hold that is not renewed, is trusted as a hand-over is: by a sample of the server's clock, which
// costs a request of its own. The one renewal of an attached hold without renewal has that end as
// its ceiling. So the server ends the hold then, whatever became of its clock.
//
// A quorum has no clock of its own. There the ticket says what each node's clock showed at the
// grant, and the age of the hold is the median of what the nodes' clocks show since.
//
// # What each failure does
//
//	answer of an ask lost       the next ask of the same ticket finds what it did
//	answer of a release lost    the release is sent again; if it finds no hold then, it is uncertain:
//	                            the first one removed the hold, or an operator or the server before
//	no answer to a release      it is sent again until trust or its time ends; then it is uncertain,
//	                            and a cleanup goes on until the hold must have expired
//	answer of a downgrade lost  it is sent again until trust ends; the caller gets an error if its
//	                            context ends before
//	answer of an extend lost    trust is as it was; the caller may extend again
//	message lost                found by asking: at the latest after 6 s
//	message late or forged      not believed, or corrected by the first renewal, a tenth of the claim
//	                            later
//	answer of an attach lost    the caller gets an error; the hold may have been prolonged once, and
//	                            another attach finds it
//	message of a break lost     the next renewal tells; nobody is let in meanwhile
//	holder dies after a break   the remainder ends with the hold's time
//	ticket lost                 the hold ends with its time, as that of a process that crashed
//	server gone                 waiters go on asking; a holder is told when trust ends
//	server lost its data        holds: told by the next renewal; places: joined anew, in the order of
//	                            asking
//	fail-over                   as lost data, for what the new master lacks; but an old master that
//	                            lives on confirms renewals until it steps down or its connections end:
//	                            told by the new one
//	server clock forward        holds end early: told by the next renewal; a message across the step
//	                            is not believed
//	server clock back           holds end late
//	this process stood still    trust has ended by the clocks: Lease.Err says so before the caller's
//	                            code can act on it
//	this process crashed        its holds end with their TTL; its places are passed over, and swept
//	                            after 18 s
//	killed while it waits at    others pass the place at once; it lives for keep after the last ask,
//	a kept place                for the next process
//	this host is silent         its connections seem to live, so its places are handed the lock: each
//	                            for one claim, and the first of them for up to 6 s more, until the
//	                            next waiter asks
//
// # What is not guaranteed
//
// Code that does not look at its lease is not stopped. Between the end of trust and its next look,
// or its next step at a storage that checks tokens, that code is the caller's affair. Order is that
// of joining at the server, per process for pooled callers.
//
// Some servers forget: a restart without persistence, or an operator's DEL. Such a server, or one
// whose clock is set forward, lets another in while a holder still trusts its lease. That lasts
// until the answer to the holder's next renewal, or else until the end of trust. A fail-over
// without confirmed replicas does the same, but for longer. The old master confirms renewals as
// long as it believes that it is master and the holder's client asks it, and each one prolongs
// trust. That lasts at the longest until a renewal reaches the new master.
package engine
