// Package telemetry has what the Observer of a client of package holdfast may offer beside Observe:
// where a caller belongs in a trace (Tracer), and a look at each request to a server
// (RequestObserver). A client asks its Config.Observer for both. It also has the words for
// how calls and requests end, as they are used for metrics.
//
// Packages otelholdfast and promholdfast are such observers, for OpenTelemetry and Prometheus.
package telemetry

import "context"

// A Tracer says where a caller belongs in a trace. If holdfast.Config.Observer is one, each request
// for a hold carries that to the server, and the events of callers that wait tell it of the holder
// (holdfast.Event.HolderTrace). It is no part of what makes callers of one process share a queue.
// It costs the server its bytes for each hold and each waiter.
type Tracer interface {
	// Trace returns where the caller with a context belongs, such as a W3C traceparent: 1 to 64
	// printable characters of ASCII, without spaces. Any other text is left out, as is the empty
	// one, which means nowhere. It is called in the goroutine of that caller, or of another caller
	// that waited for it. A panic is caught and logged.
	Trace(ctx context.Context) string
}

// A RequestObserver is told of each request to a server, if it is holdfast.Config.Observer.
// Subscriptions and the questions which servers there are are not among them. A client of a quorum
// sends one to each master.
type RequestObserver interface {
	// ObserveRequest is called for each request that was sent, once the answer is there or does not
	// come any more, by many goroutines at once. It must return quickly: the callers wait for it,
	// and several requests may have travelled together. A panic is caught and logged.
	ObserveRequest(Request)
}

// A Request is one request to a server.
type Request struct {
	Op      string // what it was for, as holdfast.StoreError.Op, or "node", "time" or "unwatch"
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

// An Outcome is how a call for a lock ended, in a word, as it is used for metrics:
// holdfast.Event.Outcome.
type Outcome string

// The outcomes of calls.
const (
	OutcomeGranted  Outcome = "granted"   // holdfast.EventGranted
	OutcomePassedOn Outcome = "passed_on" // holdfast.EventPassed
	OutcomeRefused  Outcome = "refused"   // the lock is held, and the call did not wait
	// its context or its time was over, its polling ran out, or its wait was ended
	OutcomeGaveUp Outcome = "gave_up"
	// the server was away or refused, an argument was bad, or the client is closed
	OutcomeError Outcome = "error"
)
