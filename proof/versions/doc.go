// Package versions runs clients of this commit beside those of an earlier one, in processes of
// their own, on the same names of real servers. Its tests run with
// HOLDFAST_PROOF=1.
//
// The earlier commit is that of the last tag, or until there is one the commit that const untagged
// names. HOLDFAST_EARLIER takes another. Its files come from the history of this clone. A test
// builds two programs from them: the worker (package proof/workload), and the agent of this
// package, which asks for nothing but the public API. So a commit may rename what it likes. The
// JSON of workload.Plan, of history.Record and of the agent must stay.
package versions

// A Request is one thing to do. Lease is the test's word for a lease of this agent.
type Request struct {
	ID     int
	Do     string // lock, try, release, check, lost, detach, attach, inspect, break
	Kind   string // of lock and try: mutex, read, write
	Name   string
	Lease  string
	Ticket string
	Token  int64 // of break
}

// An Answer tells what came of a Request.
type Answer struct {
	ID      int
	Error   string // empty if it succeeded
	Class   string // held, ticket, lost REASON, or store KIND; empty if none of these
	Token   int64
	Ticket  string
	Holders int
	Waiters int
	Foreign string
}
