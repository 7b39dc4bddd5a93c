// Package redisstore lets holdfast speak to Redis and Valkey through a go-redis client.
//
//	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
//	client, err := holdfast.New(redisstore.New(rdb), nil)
//
// # What is accepted
//
// [New] takes a *redis.Client, also one made by redis.NewFailoverClient, and a
// *redis.ClusterClient. A *redis.Ring spreads keys by hash over servers that know nothing of each
// other; a lock there would be forgotten whenever a server comes or goes, so it is refused. So are
// nil and every other implementation.
//
// # What happens to the client
//
// Nothing: the store uses its connections and leaves its options, its hooks and its life to the
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
// # Sentinel and Cluster
//
// A failover client asks its sentinels whenever it dials. On a cluster the store uses the
// connections of the client's nodes. holdfast follows the slots, and reads them anew as soon as a
// request fails, whatever the client's reload interval; MOVED and ASK are followed. A request that
// could not be sent, because its node is gone, goes where the slot is served by now; one that may
// have been sent is not sent again. A channel with a hash tag is subscribed by SSUBSCRIBE at the
// node that serves its slot, on one connection a node. It follows its slot and the fail-over of its
// node. Other channels are on one connection to any master.
//
// Where the server must be dialed, the client's DialerRetries and DialerRetryTimeout say how long a
// refused connection is tried again before it is reported. On a cluster set DialerRetries to 1: a
// caller that waits for a node that is gone could find the new node instead.
package redisstore
