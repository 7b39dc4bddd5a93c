// Package engine decides who waits and who holds in this process: the queue of its goroutines, leases, the watchdog and
// trust. It speaks to whatever keeps the locks through package protocol alone, and runs on a protocol without
// a queue and without tokens too.
//
// # Glossary
//
// These are the words of the whole module. One word has one meaning.
//
//	name        what is locked, as users write it; it has one kind (mutex, rwmutex, semaphore, latch, election)
//	attempt     one try to hold a name, from its first request until it holds or is abandoned
//	ticket      the identity of an attempt at the server; it never changes while the attempt lives
//	hold        the right of one ticket to a name, as the server keeps it
//	tenure      the time that one local holder has a hold; a hold passes from tenure to tenure
//	entry       one lease on a hold; reentry adds one
//	lease       what a caller gets: one entry into one tenure
//	trust       the time in which a process may act on its hold, by its own clocks
//	margin      how much earlier trust ends than the hold: TTL/100 + 5 ms
//	grant       the passage of a ticket from waiting to holding
//	hand-over   a grant by a release of another holder; a message tells the waiter
//	claim       the time in which a hand-over must be taken up
//	queue       the tickets that wait at the server, in order; also the goroutines of a pool
//	place       the position of one ticket in the server's queue
//	pool        the goroutines of this process that wait for one lock
//	waiter      a goroutine that waits for a hold
//	watcher     a goroutine that waits for a state of a name and does not want to hold it
//	remainder   what is left of a hold that was taken over or has a min hold: it excludes others
//	fencing token  a number that grows with every grant of a name; storage refuses a smaller one
//	channel     where a server publishes the messages to one process
//	gap         a time in which messages may have been missed
//	cleanup     the requests in the background that remove what a ticket may have left at the server
//	batch       requests of many goroutines that go to one node together
//	node        one server; of a cluster, one that has slots; of a quorum, one of the masters
//	slot        one of the 16384 parts of a cluster's keys; all keys of a name lie in one
//	quorum      a majority of independent masters
//	tally       the count of the answers of a quorum's nodes to one request
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
//	subscription  the one subscription of the client, while a goroutine waits
//	cleanup       goroutines that remove what was given up
//
// One mutex guards all of it. It is never held while a request is under way or while a caller's code runs: a goroutine
// that holds it queues such an effect, and the effect runs when the mutex is unlocked (guard).
//
// # An attempt
//
//	         ask                     held
//	(start) ------> unknown outcome -------------------------> HOLD
//	           ^     |  |  \ queued                              ^
//	           |     |  |   v                                    | believed
//	   timer,  |     |  |  QUEUED --- grant message- ------------+
//	  nudge,   |     |  |   |    \---- not believed: ask
//	    gap    +-----+--|---+
//	                    | refused, or ctx ended
//	                    v
//	                ABANDONED ---- free, until that is certain ----> (end)
//
// The ticket stays the same from the first ask to the last free, so that a request that arrives twice changes nothing, and
// an answer that was lost is found again by the next ask. After a failure that may pass (no answer, no connection,
// loading, out of memory) an attempt asks again, after 20 ms at first and a second at last, until
// its caller's context ends.
// An attempt is abandoned, too, when nobody knows whether it won: every ask carries the moment after which it takes no
// effect, and a free that was sent later and answered is the last word. A hand-over to it meanwhile is given back at once.
//
// Who waits asks every 5 s (+-20 %): that is the sign of life, and finds what messages lost. It asks sooner when the
// holder's known time is over (those behind the first a little later each), when a message says so, and at once after
// the subscription was gone and is back. A message that comes before the answer it belongs to waits for it.
//
// # A hold
//
//	               refused
//	        +-------------------+
//	        v                   |     applied
//	(grant) HELD --------> DOWNGRADING --------> SHARING
//	         |                  |                   |
//	         +------------------+-------------------+
//	         |                  |                   |
//	         v                  v                   v
//	     RELEASING            LOST ------------> CLEARED
//
// A hold is held as its lock asked for it. It is live while it is held, downgrading or sharing. Its last entry, a yield or
// Close makes it releasing. A hold is lost when trust ends or when another caller took it over; the server may still keep it.
// It is cleared once the server says that nothing is left, or once its cleanup is scheduled. Only hold.to changes the state,
// and it refuses every other transition.
//
// # A pool
//
// At most one request of a pool stands in the server's queue: its leader's, who runs the attempt in its own goroutine.
// A leader that gives up hands the attempt, with its place, to the next goroutine. A hold passes from
// goroutine to goroutine in order, without a request, for 5 ms, while tokens are reserved and trust is left;
// then it is yielded: the next goroutine asks with a new ticket and gives the old hold back in the same request, which hands
// on if anybody waits elsewhere and keeps if nobody does. Only callers for whom nothing but the goroutine differs share
// a pool; a lease with times of its own, with an owner, or in strict order asks the server itself.
//
// # Readers
//
// A hold that shares is not passed on but joined: it has one tenure, whose leases are all of the readers that are in, and one
// token. While the hold is younger than 5 ms, a reader of its pool enters it without a request. After that the next reader
// leads: it asks with a new ticket, so that the server puts it behind a writer that waits, of this process or another; its
// hold is the one that is joined from then on. Readers that come while their leader waits wait with it, and enter
// together. Who waits when a hold becomes one to join, by a grant or a downgrade, is in; a leader may learn of it late, when it
// has the answer to a request of its own. An older hold lives, and is renewed, until its last reader has left it. So many readers cost what one does, and
// a hold more a slice; and a writer waits for those who read when it came, and at most a slice of a process's later ones.
//
// # Permits
//
// A semaphore's holds share, as far as the permits go; each acquire is a hold of its own. One goroutine of a pool (same
// permits, same weight) stands in the server's queue; when it is in, the next one leads, with a ticket of its own. Nothing
// passes inside the process: the next in the queue may be elsewhere.
//
// The payload of a ticket says how many permits the name has. A Resize leaves the tickets alone that
// hold or wait; the server refuses a new one with the old number and names the new number. If the
// attempt, or one that its caller waited behind, was accepted with the old number before, then the
// name was resized: the attempt goes on with a new ticket and the new number, and so do those after
// it. Its pool serves the waiters that it has, to the last, but leaves the engine's table: a new
// caller with the old number makes a pool of its own, whose leader the server refuses. Nobody can
// tell such a caller from one whose number was never right. A caller that polls goes on
// likewise once it was told that others hold.
//
// # Entries
//
// Under the context of a lease of the same name a caller enters its tenure, without a request, and gets an entry, which
// excludes or reads as it asked: read in read, write in write, read in write. Write in read is refused: two who did that
// would wait for each other for ever. A semaphore is not entered: each acquire takes permits.
//
// When the last entry that excludes is released or downgraded, and others read on, the hold is downgraded at the server: in
// one request it shares, with the same ticket, tokens and what is left of its times, and readers at the head of the
// queue enter. It is then the hold that readers of this process join, for a slice; a leader that waits joins too.
// A downgrade waits for the renewal under way and no renewal is sent beside it: it prolongs the hold itself, if it
// is answered. Without an answer it is sent again, with the same ticket, until one comes or trust ends, in the
// background when its caller's context is over: nobody here takes the hold for exclusive meanwhile, and what the server has it
// for does not matter. A release that crosses it frees both forms, until the request can take no effect any more.
//
// # Watching
//
//	watcher   one goroutine that waits for a state of a name, without wanting to hold it
//	Latch     a name that opens when as many have counted down as were set
//	Group     names that are held together
//
// A watcher looks. When it does not see what it waits for, it listens, and looks again under a ticket that
// the server nudges at the next change: what changed before that look is in its answer, what changes after it is told.
// A message says only that it is time to look. Whoever waits looks every 5 s (+-20 %) all the same, which is what
// keeps its ticket known; at once when the subscription was gone and is back; and twice a second while it cannot
// listen. So a message that was missed costs one such pause, never the wait. A failure that may pass is backed off from as in
// an attempt. A watcher that is done takes its ticket back, once, in the background: the server forgets it anyway.
//
// # Latches
//
// Setting and counting down are one call each with an id of its own, sent again until an answer comes or
// the call's time, ReleaseTimeout, is over: the server takes an id once. Every request carries the moment after which it
// takes no effect, so that a call that failed for good cannot count later.
//
// # Elections
//
// A leader is the holder of a Lock of kind 'e' in strict order: leadership never passes inside a process, so that whoever
// looks at the server sees the leader of now. Watching for leaders waits until the hold that is seen is another
// than the one told last; who was slow is told the latest, not each. Trouble looks at the watchdog: a hold whose last renewal failed, or whose trust is over, is a leader
// that may not be one for long.
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
// Each name counts once, and all callers wait in the order of the names, so that none waits for a name while it holds
// one that comes later: there is no cycle. Asking for many at once never waits, so it cannot be part of one.
// Names that ctx's lease holds already are entered before, which is outside of that order: as with any lock, whoever holds
// one and waits for another must take care. A group's lease is its parts', each with its own token; they share one context.
//
// # Trust
//
// A hold is trusted until
//
//	the moment the last confirmed request was sent + TTL - margin,   margin = TTL/100 + 5 ms
//
// and not past the end of its max hold, less the margin of that, as clocks drift apart for so long. The server set its
// expiry later than the request was sent, so it expires no earlier than the margin after trust ended, as long as the two clocks run at rates that differ by less than one in a
// hundred. Trust is compared with both of this process's clocks (past): the monotonic one stands still while the machine
// sleeps, the wall clock may be set; whichever is ahead counts.
//
// A hand-over by message says: granted at server time g, for the claim. The attempt's last answer carried
// the server's time s, and was asked for at local time t. The server's clock showed s after t, so it showed g no earlier than
// t + (g - s), less a hundredth of g - s for drift, and the hand-over is trusted until the claim after that, less the
// margin of the claim: claim/100 + 5 ms. It is believed when at least half of the claim lies ahead and when g is not later
// than our clock allows (then the server's clock was set);
// else the server is asked, which confirms or denies. A message for another ticket, or one that is older than the last
// answer, is nothing. So a hand-over that was under way while the process stood still is never taken for a lease.
//
// # Renewal
//
// Every third of the TTL, measured from the sending of the last confirmed renewal; first a tenth of the claim after a
// hand-over, so that whoever holds for longer than a moment is soon trusted for more than the claim. What
// is due within TTL/24 goes along in one round; each TTL is a round of its own, and nodes are asked in parallel. A renewal
// without an answer is tried again after TTL/30, 250 ms at most (+-20 %), until trust ends. An answer that says "not
// yours" ends the lease at once. No renewal makes a hold; and a release waits for the renewal that is under way.
//
// # A hold that is taken over
//
// Resume turns the hold of another process into a remainder, which excludes all but the caller that resumed (package protocol). The
// former process learns of it by the answer to its next renewal; a process that listens gets a message first, and asks the server,
// as a message proves nothing. It ends the contexts of the leases, and one margin later it gives the remainder back: by then code that
// looks at its context has stopped. A release before that gives it back at once. So nobody but the resumer is let in while a former
// lease is trusted, or its code may still run for a margin. If the former process is gone, the remainder ends with the hold's time.
//
// Resume sends its request up to three times, each with time of its own, with one ticket: the server answers a replay alike.
//
// # What each failure does
//
//	answer of an ask lost       the next ask of the same ticket finds what it did
//	answer of a release lost    the release is sent again until trust or its time ends; then it is uncertain, and the
//	                            cleanup goes on until the hold must have expired
//	answer of a downgrade lost  it is sent again, until trust ends; the caller is told if its context ends before
//	message lost                found by asking: at the latest after 6 s
//	message late or forged      not believed, or corrected by the first renewal, a tenth of the claim later
//	answer of a resume lost     it is sent again, three times in all; then what it won is given back, and the former
//	                            hold is a remainder until its process has stopped
//	server gone                 who waits goes on asking; who holds is told when trust ends
//	server lost its data        holds: told by the next renewal; places: joined anew, in the order of asking
//	fail-over                   as lost data, for what the new master lacks; but an old master that lives on confirms
//	                            renewals until it steps down or its connections end: told by the new one
//	server clock forward        holds end early: told by the next renewal; a message across the step is not believed
//	server clock back           holds end late
//	this process stood still    trust has ended by the clocks, before any code of the caller runs on a Lease's Err
//	this process crashed        its holds end with their TTL; its places are passed over, and swept after 18 s
//	this host is silent         its connections seem to live, so its places are handed the lock: each for one claim, and
//	                            the first of them for up to 6 s more, until the next waiter asks
//
// # What is not guaranteed
//
// Code that does not look at its lease is not stopped: between the end of trust and the next look, or the next step at a
// storage that checks tokens, it is the caller's. Order is that of joining at the server, per process for pooled
// callers. A server that forgets (restart without persistence, an operator's DEL), or whose clock is set forward, lets
// another in while a holder still trusts its lease: until the answer to its next renewal, or else the end of trust. So does a
// fail-over without confirmed replicas, but longer: the old master confirms renewals, and each prolongs trust, as long as it
// believes that it is master and the holder's client asks it; at the longest until a renewal reaches the new one.
package engine
