package holdfast

import (
	"context"
)

// Ready tells whether the servers can serve this client, for readiness probes. It takes nothing and
// writes no key. It does not ask again. It lasts at most the smaller of ctx and 1 s. Of that, the
// question of what the servers are gets half, and the scripts get the rest.
//
// Nil says that every master answered, runs the scripts of this client, and accepts writes. A
// cluster has several masters. No master said that it may evict keys: a server with maxmemory and a
// policy other than noeviction may evict a hold, as holds have an expiry. That needs the permission
// of INFO, which is optional. A server that refuses INFO counts as one that evicts nothing. Ready
// does not try every permission that an operation may need.
//
// Of a quorum, a majority of masters that count must be ready. Ready then waits 50 ms for the
// others. If one of them may evict keys, that is an error too, as it would count although it forgot
// a hold. So is a server that two stores lead to. A master that no client has asked before notes
// when its memory began, as with any call.
//
// The errors are:
//
//   - A *StoreError: a master did not answer, or refused. Its Kind says why, such as StoreLoading,
//     StoreReadOnly (a replica) or StoreDenied (a password, or a permission to run scripts).
//   - A *StoreError of kind StoreEvicts: a master may evict keys. It does not match ErrUnavailable.
//   - A *StoreError of kind StoreSameServer: two masters of a quorum are one server. It does not
//     match ErrUnavailable.
//   - A *QuorumError: there is no such majority. It does not match ErrUnavailable if waiting cannot
//     cure that, as the masters are too few servers.
//   - ErrClosed: the client is closed.
//   - An error that matches the end of ctx: ctx was over before, or was cancelled.
//   - An *ArgumentError: ctx is nil, or New or NewQuorum did not make the client.
func (c *Client) Ready(ctx context.Context) error {
	var bad problems
	bad.check(c != nil && c.engine != nil, "Client", nil, "made by New or NewQuorum")
	bad.check(ctx != nil, "ctx", nil, "not nil")
	if err := bad.err("Client.Ready"); err != nil {
		return err
	}
	return operated("ready", "", c.engine.Probe(ctx))
}
