package protocol

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"time"
)

// A Protocol keeps the state of names. All methods are safe for concurrent use.
type Protocol interface {
	// Features says what the engine must do itself. It never changes.
	Features() Features

	// Ready returns when all is known that a request needs, at once from the second time on. It is
	// called before the time of a request begins: that time is short where the TTL is, and a first
	// connection is slow. An error is a *Failure.
	Ready(ctx context.Context, name string) error

	// Probe asks the servers whether they can serve: a majority of a quorum, and elsewhere every
	// master. It takes nothing and changes no name. The deadline of ctx bounds it. An error is a
	// *Failure. Its reason is Evicts if a server may evict keys.
	Probe(ctx context.Context) error

	// Bind prepares requests about one name. It sends nothing and cannot fail.
	Bind(spec Spec) Resource

	// BindLatch is Bind for a latch; nil where Features.NoLatches says why there are none.
	BindLatch(spec Spec) LatchResource

	// AskAll asks for several names, each once, in one request. Either all are held, or none is and
	// nothing was left behind. Then the answers are Busy, and that of the first name that is taken
	// has its holder. ErrApart: these cannot be had in one request now; nothing was done.
	AskAll(ctx context.Context, asks []ResourceAsk) (answers []Answer, err error)

	// Renew prolongs holds of many names at once and answers each, in order. A node that does not
	// answer delays the answers of no other node: they reach done, in parts, as they come. Done is
	// called once for each renewal.
	Renew(ctx context.Context, renewals []Renewal, done func(i int, r RenewalAnswer))

	// Listen opens the way of messages to this process, until the Listener is closed. It returns
	// once it is certain that no later message is missed. Where names have channels apart, Hear
	// makes certain of that instead. Gaps are reported to the sink.
	Listen(ctx context.Context, sink Sink) (Listener, error)

	// ListenTicket is Listen for the messages to the ticket of a kept place, and to no other.
	// Protocols without a queue refuse it.
	ListenTicket(ctx context.Context, id ID, sink Sink) (Listener, error)

	Operators
}

// Features says what a protocol can do beyond holding a name.
type Features struct {
	// Queue: an Ask may join a queue, and a Free hands on to its first ticket. Without a queue, the
	// engine asks again when a message says that a name is free, or when the holder's time is over.
	Queue bool

	// Confirm: a hand-over is not to be trusted by its message alone: asking confirms it.
	Confirm bool

	// NoPermits and NoLatches say why there are no semaphores, and no latches; empty where there
	// are. Without a queue there are no kept places.
	NoPermits, NoLatches string
}

// ErrApart says that names cannot be asked for in one request.
var ErrApart = errors.New("the names lie apart")

// A Kind is what a name is used as. It is part of the state of the name: another kind is refused.
type Kind byte

// The kinds of names.
const (
	Mutex     Kind = 'm'
	ReadWrite Kind = 'r'
	Semaphore Kind = 's'
	Latch     Kind = 'l'
	Election  Kind = 'e'
)

// String is the kind as users read it.
func (k Kind) String() string {
	switch k {
	case Mutex:
		return "mutex"
	case ReadWrite:
		return "rwmutex"
	case Semaphore:
		return "semaphore"
	case Latch:
		return "latch"
	case Election:
		return "election"
	}
	return "unknown kind " + string(rune(k))
}

// A Spec says what a Resource is: a name, and the kind of caller that wants it.
type Spec struct {
	Name  string
	Kind  Kind
	Owner string // holds of one owner, not empty, do not exclude each other
	Label string // for others to read

	// Shared: a hold excludes only those that do not share. Of a ReadWrite, its readers; of a
	// Semaphore, all.
	Shared bool

	// Permits is how many a semaphore has; else 0. It belongs to the name. While the name is in
	// use, an Ask with another number is a *Mismatch, unless its ticket held or was queued before a
	// Resize.
	Permits int64

	TTL   time.Duration // of the holds, for others to read
	Fixed bool          // the holds are not renewed by themselves, for others to read

	Claim time.Duration // how long a hand-over waits to be taken up; whole milliseconds

	// Life is how long a place in the queue lives without a sign of life; whole milliseconds.
	// 0: PlaceLife.
	Life time.Duration
}

// PlaceLife is how long a place in the queue lives without a sign of life, if its Spec says nothing
// else. A waiter asks every 5 s, +-20 %, so one that misses three asks has none.
const PlaceLife = 18 * time.Second

// A Resource sends requests about one name on behalf of one kind of caller. All methods are safe
// for concurrent use.
type Resource interface {
	// Ask asks for the name. An error is a *Failure, a *Foreign, a *Mismatch, an *Upgrade or an
	// *Evicted; or a *Broken: the ticket held, and a Break made of that hold a remainder.
	Ask(ctx context.Context, ask Ask) (Answer, error)

	// Free gives back a hold or a place in the queue, and lets the next in. It reports whether
	// there was any. A *Broken: a Break had made of the hold a remainder; it is removed, or ends at
	// Keep if that is sooner.
	Free(ctx context.Context, free FreeRequest) (was bool, err error)

	// Downgrade turns the exclusive hold of a ticket into one of this resource, which is shared. It
	// has the same id and tokens, and the TTL of the Ask from now on; nobody gets in between.
	// Queued tickets that share enter. Held, or Busy when there is no such hold.
	// A *Broken: a Break has made of the hold a remainder.
	Downgrade(ctx context.Context, ask Ask) (Answer, error)

	// Origin says, for another process, what this one alone knows of the hold of a ticket that was
	// granted at a server time. It sends nothing.
	Origin(ticket Ticket, granted int64) Origin

	// Adopt reads the origin of a hold that another process got, so that requests about its ticket
	// are the same here as there. If timed, it also asks for the server's time. It touches nothing.
	// ErrOrigin, or a *Failure: the time could not be had.
	Adopt(ctx context.Context, ticket Ticket, origin Origin, timed bool) (AdoptedHold, error)

	// Resize sets how many permits the name has, also while they are held, and lets in the tickets
	// that fit now.
	Resize(ctx context.Context, permits int64, deadline time.Time) error

	Subject
}

// A Subject is what can be looked at, and watched.
type Subject interface {
	// Look returns the state of the name. A watcher, if there is one, is nudged once at the next
	// change: another ticket holds, or a latch was set or opened. It is forgotten when the life of
	// a place is over, unless it looks again.
	Look(ctx context.Context, watcher *Ticket) (Standing, error)

	// Unwatch takes a watcher back.
	Unwatch(ctx context.Context, watcher Ticket) error
}

// A LatchResource sends requests about one latch. A latch that was never set, or is gone, is unset.
// A latch is set until as many have counted down; then it is open, until its TTL is over or it is
// set again. All methods are safe for concurrent use.
type LatchResource interface {
	// Set sets the count, and the time after which the latch is gone if no request touches it.
	// While the latch is set, Set does nothing and returns its standing and false. A replay with
	// the same id returns true.
	Set(ctx context.Context, id ID, count int64, ttl time.Duration, deadline time.Time) (Standing, bool, error)

	// CountDown takes one off, once for an id. At 0 the latch opens and all watchers are nudged. An
	// unset latch is left alone. A request takes no effect after its deadline, and no request with
	// this id after last: the id is forgotten a second later.
	CountDown(ctx context.Context, id ID, deadline, last time.Time) (Standing, error)

	Subject
}

// A LatchState is where a latch is in its life.
type LatchState int

// The states of a latch.
const (
	LatchUnset LatchState = iota
	LatchSet
	LatchOpen
)

// A Standing is the state of a name, as a Look found it.
type Standing struct {
	Server int64 // server time of the look, microseconds
	Holder Party // of the first hold
	Token  int64 // of the first hold
	// Since is when it was granted, in server microseconds. It is the same in every look: it may be
	// the token, and ahead of Server.
	Since   int64
	Holders int
	Waiters int
	Permits int64 // of a semaphore: how many there are
	Taken   int64 // of a semaphore: how many are held
	Latch   LatchState
	Count   int64 // of a latch: how many are still to count down
}

// An ID is 128 random bits, 22 characters of base64url: one attempt.
type ID string

// NewID returns an ID of its own.
func NewID() ID {
	var bits [16]byte
	_, _ = rand.Read(bits[:]) // it never fails
	var text [22]byte
	base64.RawURLEncoding.Encode(text[:], bits[:])
	return ID(text[:])
}

// A Ticket identifies an attempt and what it asks for. It never changes while the attempt lives.
type Ticket struct {
	ID         ID
	Block      int64 // how many tokens a grant reserves, at least 1
	Weight     int64 // how many permits of a semaphore it takes; else 0
	NoMessages bool  // no message reaches this process: a hand-over need not try

	// Retain: the hold may stay with its process while nobody uses it there. It is not for
	// semaphores, and not for owners. Wanted: its holder may let go if others want the name. With
	// either, each Ask that the hold keeps out has the server tell that process (Sink.Recall). It
	// is part of what the server knows the ticket by.
	Retain, Wanted bool

	// Keep makes the place in the queue a kept place: it lives for so long after each ask, from
	// whichever process. Whole milliseconds; 0: an ordinary place. See Ask.
	Keep time.Duration

	// Channel is where messages about the ticket go, as the protocol writes it. It is part of what
	// the server knows the ticket by. Empty: the channel of this process.
	Channel string

	// Under names the leases under which the ticket waits, and More says that there are others.
	// It is evidence for those that look for deadlocks. It never changes while the ticket lives.
	Under []Evidence
	More  bool

	// Trace is where the caller belongs in a trace, for those that wait for the ticket to read. It
	// never changes while the ticket lives. Empty: nowhere; so is the ticket of a kept place, with
	// which several processes wait.
	Trace string
}

// An Origin is what a process that goes on with a hold must know of the process that got it, in
// the words of the protocol. It is bytes, and says which protocol and format it is of.
type Origin string

// ErrOrigin says that an origin is not of this protocol, or of another format.
var ErrOrigin = errors.New("the origin is of another format")

// An AdoptedHold is a hold of another process, as this one must name it. If it was timed, the
// server's clock showed Server after the local moment Sent.
type AdoptedHold struct {
	Ticket  Ticket
	Granted int64 // server time of the grant, microseconds, as this process's answers tell the time
	Sent    time.Time
	Server  int64 // microseconds; 0: not timed
}

// An Ask asks for a name.
//
// The ticket of a kept place joins the queue with its first Ask alone, which has Join. Each later
// Ask has InLine. It is answered Busy if the ticket has neither a hold nor a place any more, and
// then nothing is changed. Processes that wait with the ticket listen with Protocol.ListenTicket.
//
// A hand-over to a kept place is an offer: a hold for the claim, which leaves the place as it is.
// The next Ask takes it up. A kept place gets one offer for each Ask with InLine and not Leaving,
// and only while the server is certain that its ticket is listened to, and for the life of an
// ordinary place after that Ask. At all other times it is treated as if it were not there: all
// behind it pass it, and it keeps its place. While it can get no offer it does not count among the
// Waiters of an Answer and a Standing.
type Ask struct {
	Ticket   Ticket
	Join     bool          // when the name is taken, join the queue; else, without InLine, only look
	InLine   bool          // the server has, or had, a place or a hold of this ticket: it joins as with Join
	Leaving  bool          // of a kept place: nobody waits with the ticket after this Ask; InLine is set
	TTL      time.Duration // the hold's time from the moment that it is granted
	Release  *Ticket       // a hold of this process, given back in the same step, before others are let in
	Deadline time.Time     // local time after which the request takes no effect
	Pace     *Pace         // counts this request. A protocol that asks its nodes again counts that too; nil: unbounded
}

// A ResourceAsk is an Ask and the Resource that sends it.
type ResourceAsk struct {
	Resource Resource
	Ask      Ask
}

// A Status is what became of an Ask.
type Status int

// The answers to an Ask.
const (
	Held   Status = iota + 1 // this ticket holds
	Queued                   // this ticket is queued
	Busy                     // others hold; nothing was left behind
)

// String returns a status in words.
func (s Status) String() string { return [...]string{"no answer", "held", "queued", "busy"}[s] }

// An Answer answers an Ask.
type Answer struct {
	Status  Status
	Token   int64 // held: the first token of the hold; else: that of Holder, 0 where it is not told
	Since   int64 // not held: when Holder was granted, server microseconds; 0: not known
	Block   int64 // held: how many tokens are reserved, from Token on
	Server  int64 // server time of the decision, microseconds
	Holder  Party // else: one holder; empty where only remainders are left
	Holders int   // else: how many hold, or how many remainders are left
	Waiters int   // else: how many are queued; before this ticket when it is queued itself

	// Left is what keeps others out where only remainders are left: HoldBroken or HoldMinHold. By
	// is the label of who broke the hold.
	Left HoldState
	By   string

	// Remaining is, where others hold, until the first of the holds is over, or of the remainders,
	// if it is not prolonged. Negative: not known.
	Remaining time.Duration
}

// A Party is a holder or a waiter.
type Party struct {
	Owner string
	Label string

	// Unnamed: it has no owner, and Owner is the id of its ticket instead.
	Unnamed bool

	// Kept: it is the ticket of a kept place, which no process need have.
	Kept bool

	// Retains: its process may keep the hold while nobody uses it there, and was told that another
	// asks.
	Retains bool

	// Trace is that of its ticket. Any client may have written anything there.
	Trace string
}

// A FreeRequest gives back.
type FreeRequest struct {
	Ticket Ticket

	// Keep is the server time, in microseconds, before which nobody else may enter: the end of a
	// min hold. Else 0.
	Keep int64

	// Next is the ticket that goes before all others of the queue, if it has an open place; empty:
	// none does.
	Next ID
}

// A Renewal prolongs one hold.
type Renewal struct {
	Resource Resource
	Ticket   Ticket
	Token    int64         // of the grant
	TTL      time.Duration // from now; 0 only looks whether the hold is there
	Floor    int64         // server time before which the hold must not end, microseconds; else 0
	Ceiling  int64         // server time at which the hold must end, microseconds; else 0

	// Trusted is, with a Ceiling, the local time until which the caller may act on the hold. The
	// server's clock may be known only roughly; the ceiling must not end the hold before.
	Trusted time.Time
}

// A RenewalAnswer answers a Renewal. A *Broken is an answer: the hold has become a remainder. With
// another error it is unknown whether the hold was prolonged.
type RenewalAnswer struct {
	Held bool // the hold is there, and prolonged
	Err  error
}

// A Sink takes messages. Its methods return quickly.
type Sink interface {
	// Granted says that a ticket holds: from server time At for Claim, unless it is prolonged.
	Granted(g Grant)

	// Nudge says that a ticket should ask once the time has passed.
	Nudge(id ID, after time.Duration)

	// Broken says that the hold of a ticket may have been broken. The answer to a renewal says
	// whether it was.
	Broken(id ID)

	// Recall says that another ticket asks for the name that a ticket with Retain or Wanted holds,
	// or that a Tell was about its hold.
	Recall(id ID)

	// Gap says that messages may have been missed.
	Gap()
}

// A Grant is the message of a hand-over to the process of its ticket.
type Grant struct {
	ID    ID
	Token int64
	Block int64
	At    int64 // server time, microseconds
	Claim time.Duration
}

// A Listener is an open way of messages.
type Listener interface {
	// Hear makes sure that messages about a name reach the sink, for the time being: a waiter calls
	// it before each pause. It returns once no later message is missed, and the moment since when;
	// zero where one channel serves all names. It fails within a second or so.
	Hear(ctx context.Context, about Subject) (since time.Time, err error)

	// Close ends it. No message reaches the sink once Close has returned.
	Close()
}
