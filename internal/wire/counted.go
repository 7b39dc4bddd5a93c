package wire

import "context"

// An Outcome is what became of a request that was sent.
type Outcome int

// The outcomes.
const (
	Answered Outcome = iota
	Refused          // the server answered with an error; a script that it does not know is sent again, whole
	NoAnswer         // it is not known whether the server carried it out
)

// Counted returns a store that tells of each request that it sent, once the answer came or does not
// come any more. Tell is called by many goroutines at once.
func Counted(s Store, tell func(op string, outcome Outcome)) Store { return &countedStore{s, tell} }

type countedStore struct {
	Store
	tell func(op string, outcome Outcome)
}

// Do implements Store.
func (c *countedStore) Do(ctx context.Context, requests []Request) []Reply {
	replies := c.Store.Do(ctx, requests)
	for i := range replies {
		switch reply := &replies[i]; {
		case reply.Unsent:
		case reply.Err != nil:
			c.tell(requests[i].Op, NoAnswer)
		case reply.Refused != "":
			c.tell(requests[i].Op, Refused)
		default:
			c.tell(requests[i].Op, Answered)
		}
	}
	return replies
}
