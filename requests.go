package holdfast

import "github.com/holdfast-go/holdfast/internal/wire"

// A RequestObserver is an Observer that is told of each request to a server as well, if it is
// Config.Observer. Subscriptions and the questions which servers there are are not among them. A
// client of a quorum sends one to each master.
type RequestObserver interface {
	Observer

	// ObserveRequest is called for each request that was sent, once the answer is there or does not
	// come any more, by many goroutines at once. It must return quickly: the callers wait for it,
	// and several requests may have travelled together. A panic is caught and logged.
	ObserveRequest(Request)
}

// A Request is one request to a server.
type Request struct {
	Op      string // what it was for, as StoreError.Op, or "node", "time" or "unwatch"
	Outcome RequestOutcome
}

// A RequestOutcome is what became of a request, in a word, as it is used for metrics.
type RequestOutcome string

// The outcomes of requests.
const (
	RequestAnswered RequestOutcome = "answered"
	RequestRefused  RequestOutcome = "refused"   // by an error; so is a script that the server did not know yet
	RequestNoAnswer RequestOutcome = "no_answer" // it is not known whether it took effect
)

// counted is a store that tells the observer of its requests, if the observer wants that.
func (c *Config) counted(s wire.Store) wire.Store {
	observer, ok := c.Observer.(RequestObserver)
	if !ok {
		return s
	}
	outcomes := [...]RequestOutcome{wire.Answered: RequestAnswered, wire.Refused: RequestRefused, wire.NoAnswer: RequestNoAnswer}
	return wire.Counted(s, func(op string, outcome wire.Outcome) {
		defer func() {
			if panicked := recover(); panicked != nil {
				c.Logger.Error("holdfast: the observer panicked", "panic", panicked)
			}
		}()
		observer.ObserveRequest(Request{Op: op, Outcome: outcomes[outcome]})
	})
}
