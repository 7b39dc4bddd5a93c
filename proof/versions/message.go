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
