package protocol

import "fmt"

// A Reason says why a request failed.
type Reason int

// Why a request failed.
const (
	Unreachable   Reason = iota + 1 // no connection, or none that works
	NoAnswer                        // sent, and no answer came in time
	NotSent                         // it failed in this process: no server is to blame
	Denied                          // password or permission
	Loading                         // the server reads its data
	ReadOnly                        // a replica, or a master that may not write
	OutOfMemory                     // maxmemory is reached
	NoReplicas                      // too few replicas, or too few that confirmed
	Misconfigured                   // the server cannot persist, and so refuses writes
	ClusterDown                     // the cluster does not serve this slot now
	Unsupported                     // the server lacks what a script needs
	ForeignKey                      // a key is not ours, seen when something may have been written
	Evicts                          // the server may evict keys: only Probe says so
	SameServer                      // nodes of a quorum are one server
	Other                           // anything else that the server refuses
)

// reasonNames are the reasons as users read them.
var reasonNames = [...]string{
	Unreachable: "unreachable", NoAnswer: "no answer", NotSent: "not sent", Denied: "denied", Loading: "loading",
	ReadOnly: "read-only", OutOfMemory: "out of memory", NoReplicas: "too few replicas",
	Misconfigured: "cannot persist", ClusterDown: "cluster down", Unsupported: "unsupported",
	ForeignKey: "foreign key", Evicts: "may evict keys", SameServer: "same server", Other: "refused",
}

func (r Reason) String() string {
	if r <= 0 || int(r) >= len(reasonNames) {
		return "unknown"
	}
	return reasonNames[r]
}

// Passing reports whether waiting may cure it, so that a waiter goes on. A server that has no
// memory left, or cannot persist, serves again once memory is freed or its disk is mended.
func (r Reason) Passing() bool {
	switch r {
	case Unreachable, NoAnswer, NotSent, Loading, ReadOnly, OutOfMemory, NoReplicas, Misconfigured, ClusterDown:
		return true
	}
	return false
}

// A Failure is a request that did not get an answer, or was refused.
type Failure struct {
	Op      string
	Name    string
	Node    string
	Reason  Reason
	Unknown bool // the request may have taken effect
	Err     error
}

func (f *Failure) Error() string {
	return fmt.Sprintf("%s %q%s: %s: %v", f.Op, f.Name, at(f.Node), f.Reason, f.Err)
}

func (f *Failure) Unwrap() error { return f.Err }

// OrUnknown is the failure of several requests for one thing. Its outcome is unknown as well where
// that of an earlier one is.
func (f *Failure) OrUnknown(unknown bool) *Failure {
	if f.Unknown || !unknown {
		return f
	}
	also := *f
	also.Unknown = true
	return &also
}

// MustRepeat reports whether to ask again for what must be done: the failure may be cured by then,
// or an answer is needed. A missing permission needs an operator.
func (f *Failure) MustRepeat() bool { return f.Reason.Passing() || f.Unknown && f.Reason != Denied }

// A Foreign is a name whose key holds something that this kind or this version must not touch.
// Nothing was changed.
type Foreign struct {
	Op           string
	Name         string
	Node         string
	Key          string
	Alternatives []string // keys of which it may be one instead, where the server does not tell
	Found        string   // what is there
	Want         string   // what would have been allowed
}

func (f *Foreign) Error() string {
	return fmt.Sprintf("%s %q%s: %s", f.Op, f.Name, at(f.Node), f.Text())
}

// at is where it happened, as part of a text.
func at(node string) string {
	if node == "" {
		return ""
	}
	return " at " + node
}

// Text is the error without what was asked for.
func (f *Foreign) Text() string {
	const several = 8 // of one name there are fewer
	key := fmt.Sprintf("key %q", f.Key)
	for i, other := range f.Alternatives {
		if i == several {
			key += fmt.Sprintf(" or %d more", len(f.Alternatives)-i)
			break
		}
		key += fmt.Sprintf(" or %q", other)
	}
	return fmt.Sprintf("%s is %s, not %s", key, f.Found, f.Want)
}

// A Mismatch is a semaphore that is in use with another number of permits. Nothing was changed.
type Mismatch struct {
	Name       string
	Have, Want int64
}

func (m *Mismatch) Error() string {
	return fmt.Sprintf("%q has %d permits, not %d", m.Name, m.Have, m.Want)
}

// A Broken is a hold that an operator has broken: what is left of it is a remainder.
type Broken struct {
	Name string
	By   string // the label of the operator
}

func (b *Broken) Error() string { return fmt.Sprintf("%q was broken by %q", b.Name, b.By) }

// An Upgrade is an Ask to exclude others from an owner that shares the name already. Two owners
// that did so would wait for each other for ever, so it is refused. Nothing was changed.
type Upgrade struct{ Name string }

func (u *Upgrade) Error() string { return fmt.Sprintf("%q is shared by the same owner", u.Name) }
