// Package redisstore lets holdfast speak to Redis and Valkey through a go-redis client.
//
//	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
//	client, err := holdfast.New(redisstore.New(rdb), nil)
//
// # What is accepted
//
// [New] takes a *redis.Client, also one made by redis.NewFailoverClient, and a
// *redis.ClusterClient. A *redis.Ring is refused. It spreads keys by hash over servers that know
// nothing of each other, so a lock there would be forgotten whenever a server comes or goes. Nil
// and every other implementation are refused, too.
//
// # What happens to the client
//
// The store uses the client's connections, and leaves its options, its hooks and its life to the
// caller. Closing the client closes the store's way to the server, so close the holdfast client
// first. The client's limits are shared. Every request takes a connection of the pool for one round
// trip. Waiting takes one more connection, outside the pool.
//
// Each request is sent once, whatever the client's MaxRetries. If ctx has a deadline, the deadline
// takes the place of the client's ReadTimeout and WriteTimeout, in both directions: a request waits
// neither longer nor less long. A ctx that is cancelled ends the waiting for a connection, but not
// the waiting for an answer.
//
// The deadline takes a copy of the client that shares its connections, and go-redis gives such
// copies no hooks. Hooks of the client (tracing, metrics) therefore see the store's requests only
// if the client was made with ContextTimeoutEnabled. Requests then go through the client itself,
// and the sooner of deadline and timeout counts. Hooks that see dialing are not affected.
//
// # Sentinel and Cluster
//
// A failover client asks its sentinels whenever it dials. On a cluster the store uses the
// connections of the client's nodes. holdfast follows the slots. It reads them again as soon as a
// request fails, whatever the client's reload interval, and follows MOVED and ASK. A request that
// could not be sent, because its node is gone, goes to the node that serves the slot by now. A
// request that may have been sent is not sent again.
//
// On a cluster, a channel with a hash tag is subscribed by SSUBSCRIBE at the node that serves its
// slot, on one connection for each node. It follows its slot and the fail-over of its node. Other
// channels are on one connection to any master.
//
// When the store dials a server, the client's DialerRetries and DialerRetryTimeout say how long a
// refused connection is tried again before it is reported. On a cluster set DialerRetries to 1: a
// request that waits for a node that is gone could find the new node instead.
package redisstore
