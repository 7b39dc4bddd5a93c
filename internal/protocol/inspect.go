package protocol

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// Operators is what a protocol tells operators of names, and does for them.
type Operators interface {
	// Inspect tells what is known of a name, whatever it is used as. It takes nothing and writes
	// nothing. Holds whose time is over are not told. The error is a *Failure, and of a quorum a
	// Failure only if no node answers. A value of another program at the key of a name is no error:
	// the Inspection says Foreign.
	Inspect(ctx context.Context, name string, page Page) (Inspection, error)

	// Names streams the names of all masters that match a glob pattern of Redis, in any order, in
	// constant memory. A name may come twice. It needs the permission of SCAN. An error is the last
	// that is told.
	Names(ctx context.Context, pattern string) iter.Seq2[FoundName, error]

	// Break ends a hold that belongs to another caller. False: the name has no such hold, and
	// nothing was touched. It may be sent again, with the same result for the hold: true again as
	// long as what is left of the hold is there.
	Break(ctx context.Context, name string, b Break) (bool, error)

	// Evict takes a ticket out of the queue, and nudges it. Each ask while it is remembered is
	// answered with an *Evicted. A first ask that is sent again, as its answer was lost, may join
	// once more; the ask after it is answered so. True again as long as the ticket is remembered,
	// for the life of its place. False: the ticket has no place there, and nothing was touched.
	// Protocols without a queue refuse it, and so does a latch.
	Evict(ctx context.Context, name string, kind Kind, id ID, by string) (bool, error)

	// Tell tells the process of each hold that another caller wants the name (Sink.Recall). With an
	// id it tells the ticket that waits with that id to ask, so that its life begins anew. It
	// changes nothing. Protocols without a queue refuse it, and so does a latch.
	Tell(ctx context.Context, name string, kind Kind, id ID) (TellCount, error)
}

// A TellCount says how many holds, or waiters, a Tell was about.
type TellCount struct {
	Found int64
	Heard int64 // those of which a process listens, as far as the server knows
}

// A Page says how much an Inspection tells of the queue. The holds are told up to Holds.
type Page struct {
	Holds int   // how many holds to tell at most
	Queue int   // how many places to tell at most; more if several are of one Order
	After int64 // only places behind this one (Place.Order); 0: from the head
}

// An Inspection is the state of a name at one moment.
type Inspection struct {
	Server     int64 // server time, microseconds
	Kind       Kind  // 0: the name is not used
	Holds      []Hold
	HoldCount  int // of all holds and remainders
	Queue      []Place
	QueueCount int   // of all places that are not closed, also those whose life is over
	Permits    int64 // of a semaphore: how many there are
	Taken      int64 // of a semaphore: how many are held
	Latch      LatchState
	Count      int64    // of a latch: how many are still to count down
	Until      int64    // of a latch: server time at which it is gone, microseconds
	Foreign    *Foreign // what stands at the key and is none of ours; nil: nothing does
	Nodes      []Node   // of a quorum: what each master says; else nil
}

// A Node is one master of a quorum, and what it said.
type Node struct {
	Name   string        // such as "node 1"
	Counts bool          // it counts towards a majority; false if it did not answer
	Why    string        // it does not count; empty when it does, or did not answer
	SameAs string        // the node that is the same server, which is why it does not count; empty: none
	Age    time.Duration // since its memory began, by its own clock; 0: not asked
	Answer string        // to a request about a name that failed, in words
	Err    error         // why it did not answer

	Inspection Inspection // of a name; empty if it did not answer, or was not asked
}

// String is the node and what it said, in one line.
func (n Node) String() string {
	switch {
	case n.Err != nil:
		var failure *Failure
		if errors.As(n.Err, &failure) {
			return fmt.Sprintf("%s: %s: %v", n.Name, failure.Reason, failure.Err)
		}
		return fmt.Sprintf("%s: %v", n.Name, n.Err)
	case !n.Counts:
		return fmt.Sprintf("%s does not count: %s", n.Name, n.Why)
	case n.Answer != "":
		return n.Name + ": " + n.Answer
	}
	return n.Name + ": answers"
}

// A HoldState is what a hold of an Inspection is.
type HoldState int

// The states of a hold.
const (
	HoldTaken   HoldState = iota + 1 // its ticket holds
	HoldOffered                      // handed over, and not known to be taken up
	HoldMinHold                      // a remainder: released before its min hold was over
	HoldBroken                       // a remainder: a Break ended it
)

// A Hold is a hold, or what remains of one.
type Hold struct {
	ID      ID // the ticket's: never shown to users
	State   HoldState
	By      string // of a broken hold: the label of the operator that broke it
	Party   Party
	Process string // host/pid/random, as its channel says; empty: not known
	Shared  bool
	Weight  int64 // permits of a semaphore; else 0
	Token   int64 // of the grant
	Block   int64 // how many tokens the grant reserved
	Since   int64 // server time of the grant, microseconds; 0: not known
	Until   int64 // server time of its end unless it is prolonged, microseconds; before Server: not known
	TTL     time.Duration
	Fixed   bool  // it is not renewed
	Renewed int64 // server time of the last request that prolonged it, microseconds; 0: not known, or a remainder
}

// A ListenState says whether a process listens for messages.
type ListenState int

// The states of a listener, as a server knows it.
const (
	HeardUnknown ListenState = iota // the server cannot tell
	HeardYes
	HeardNo
)

// A Place is a ticket in the queue. A place whose life is over is told as long as it is there.
type Place struct {
	ID      ID // never shown to users
	Party   Party
	Process string // as of a Hold
	Shared  bool
	Weight  int64
	Order   int64       // places are in this order, and each keeps its own; a Page goes on After it
	Since   int64       // server time when the ticket joined, microseconds
	Until   int64       // server time at which its life is over if it does not ask again, microseconds; 0: not known
	Kept    bool        // a kept place
	Closed  bool        // a kept place where nobody waits now
	Heard   ListenState // HeardUnknown also of a ticket that no message reaches: it waits by asking
	Under   []Evidence  // the leases under which it waits, of a ticket that checks for deadlocks
	More    bool        // there are more such leases than Under names
}

// Evidence says that a ticket waits under a lease: the hold of this ticket of this name.
type Evidence struct {
	Name string
	ID   ID
}

// A FoundName is what Names finds.
type FoundName struct {
	Name    string
	Foreign string // a key that is none of ours, and lies where ours do; then there is no name
	Node    string // of a quorum: the node that told it first
}

// A Break ends the hold that has a token. The hold becomes a remainder: it excludes others until
// its holder frees it, or to the end that it had. If Force is set nothing is left of it, and others
// are let in at once; then a remainder can be ended as well.
type Break struct {
	Kind  Kind   // of the hold; 0: whatever it is, at a quorum
	Token int64  // any of the hold's block
	By    string // the label of the caller
	Force bool
}

// ErrNoForce says that a protocol cannot end a hold by force.
var ErrNoForce = errors.New("the masters of a quorum cannot end a hold by force at one moment")

// ErrNoQueue says that tickets cannot be evicted.
var ErrNoQueue = errors.New("there is no queue to take a ticket out of")

// An Evicted is a ticket that an operator took out of the queue.
type Evicted struct {
	Name string
	By   string // the label of the operator
}

func (e *Evicted) Error() string { return "taken out of the queue by " + e.By }
