package holdfast

import (
	"context"
)

// Ready tells whether the servers can serve this client, for readiness probes. It takes nothing and
// writes no key. It lasts at most the smaller of ctx and 1 s, of which half is for the question of
// what the servers are.
//
// Nil says that every master answered, runs the scripts of this client, and accepts writes. No
// master said that it may evict keys: with maxmemory and a policy other than noeviction, a server
// may evict a hold. That needs the permission of INFO; a server that refuses it counts as one that
// evicts nothing. Ready does not try every permission that an operation may need.
//
// Of a quorum, a majority of masters that count must be ready; Ready then waits 50 ms for the
// others. A master that may evict keys is an error there too, and so is a server that two stores
// lead to. One that no client has asked before notes when its memory began, as with any call.
//
// The errors are those of every call. The Kind of a *StoreError says why, such as StoreLoading,
// StoreReadOnly (a replica), StoreEvicts or StoreSameServer. A *QuorumError says that there is no
// such majority. It does not match ErrUnavailable if waiting cannot cure that.
func (c *Client) Ready(ctx context.Context) error {
	var bad problems
	bad.check(c != nil && c.engine != nil, "Client", nil, "made by New or NewQuorum")
	bad.check(ctx != nil, "ctx", nil, "not nil")
	if err := bad.err("Client.Ready"); err != nil {
		return err
	}
	return operated("ready", "", c.engine.Probe(ctx))
}
