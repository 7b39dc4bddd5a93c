// Package redisstore lets holdfast speak to Redis and Valkey through a go-redis client.
//
//	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
//	client, err := holdfast.New(redisstore.New(rdb), nil)
//
// # What is accepted
//
// [New] takes a *redis.Client, also one made by redis.NewFailoverClient, and a
// *redis.ClusterClient. It refuses a *redis.Ring, whose servers know nothing of each other, nil,
// and every other implementation.
//
// # What happens to the client
//
// The store uses the client's connections, and leaves its options, its hooks and its life to the
// caller. Closing the client closes the store's way to the server; close the holdfast client first.
// The client's limits are shared: every request takes a connection of its pool for one round trip,
// and waiting takes one more connection, outside the pool.
//
// Each request is sent once, whatever the client's MaxRetries. Where ctx has a deadline, it takes
// the place of the client's ReadTimeout and WriteTimeout, in both directions: nothing waits longer,
// and nothing less long either. That takes a copy of the client that shares its connections, and
// go-redis gives such copies no hooks: hooks of the client (tracing, metrics) see the store's
// requests only if the client was made with ContextTimeoutEnabled. Then requests go through the
// client itself, and the sooner of deadline and timeout counts. Hooks that see dialing are not
// affected. A ctx that is cancelled ends the waiting for a connection, but not that for an answer.
//
// If a request has no answer, or a server says that it is a replica, the store ends all connections
// of the pool that rest. It first makes a connection, and does nothing if it cannot. So the next
// request goes over a new connection, also one of the caller's. What is under way goes on.
//
// # Sentinel and Cluster
//
// A failover client asks its sentinels whenever it dials. On a cluster the store uses the
// connections of the client's nodes, and holdfast follows the slots, whatever the client's reload
// interval. DialerRetries and DialerRetryTimeout say how long a refused connection is tried again
// before it is reported. On a cluster set DialerRetries to 1: a caller that waits for a node that
// is gone could find the new node instead.
package redisstore
