// Package holdfastvet finds mistakes in programs that use package holdfast, by reading them. The
// command is for go vet:
//
//	go install github.com/holdfast-go/holdfast/holdfastvet/cmd/holdfastvet@latest
//	go vet -vettool=$(which holdfastvet) ./...
//
// Its analyzers are those of [Analyzers]:
//
//   - holdfastrelease: a lease that some way through its function neither releases nor hands on. It
//     is renewed until the client is closed, and keeps everybody else out. Tests are left out, as
//     their leases end with their client.
//   - holdfastcontext: work under a lock with a context that does not end when the lease is lost.
//   - holdfastwaitover: ErrWaitOver taken for "another holds the lock". A server answered, and the
//     error matches ErrHeld if that is so.
//   - holdfasttoken: a fencing token that goes nowhere but into a log. Only what checks the token
//     keeps a late holder out.
//
// An analyzer reports what is wrong for sure, as far as one function shows it. A lease that is
// stored, returned, passed on or captured is somebody else's, and nothing is said of it.
package holdfastvet
