package lottery

import "time"

// A Kind says what happened.
type Kind int

// The kinds of events, with the fields that they fill besides Round and Worker.
const (
	Opened    Kind = iota // all workers were told; Others: how many; no Worker
	Entered               // got the lock before the round was drawn: Token; without the lock: came to look, no Token
	Killed                // was killed while it held: Took is the TTL
	Stopped               // was stopped while it held: Took is the TTL
	Dawdles               // holds, and will not end by itself: Took is the max hold
	TookOver              // got the lock of one of these: Token, Took, Trial
	Drawn                 // Token, Ticket
	Refused               // a draw was not taken: Token, Text
	Continued             // goes on after it was stopped
	Late                  // its draw was refused as it had to be: Token, Text
	Lost                  // saw that its lease was lost: Text
	Closed                // every worker had its turn; Others: how many after the draw; Took: the median hand-over; no Worker
	Problem               // Text
	Holds                 // got the lock, drawn or not: Token, Until; comes before any of the others about that
	Renewed               // the lease was renewed: Until
	Left                  // does not hold any more
	Done                  // had its turn
)

// An Event is what a View is told, one at a time.
type Event struct {
	Kind   Kind
	Round  int
	Worker int
	Others int
	Token  int64
	Ticket int
	Took   time.Duration
	Trial  Trial
	Until  time.Time
	Text   string
}

// A View shows what happens.
type View func(Event)
