// Package redisstore lets holdfast speak to Redis and Valkey through a go-redis client.
//
//	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
//	client, err := holdfast.New(redisstore.New(rdb), nil)
//
// # What is accepted
//
// [New] takes a *redis.Client, also one made by redis.NewFailoverClient, and a *redis.ClusterClient. A
// *redis.Ring spreads keys by hash over servers that know nothing of each other; a lock there would be forgotten
// whenever a server comes or goes, so it is refused. So are nil and every other implementation.
//
// # What happens to the client
//
// Nothing: the store uses its connections and leaves its options, its hooks and its life to the caller. Closing the
// client closes the store's way to the server; close the holdfast client first. The client's limits are shared:
// every request takes a connection of its pool for one round trip, and waiting takes one more connection, outside
// the pool.
//
// Each request is sent once, whatever the client's MaxRetries. Where ctx has a deadline, it takes the place of the
// client's ReadTimeout and WriteTimeout, in both directions: nothing waits longer, and nothing less long either.
// That takes a copy of the client that shares its connections, and go-redis gives such copies no hooks: hooks of the
// client (tracing, metrics) see the store's requests only if the client was made with ContextTimeoutEnabled. Then
// requests go through the client itself, and the sooner of deadline and timeout counts. Hooks that see dialing are
// not affected. A ctx that is cancelled ends the waiting for a connection, but not that for an answer.
//
// Where the server must be dialed, the client's DialerRetries and DialerRetryTimeout say how long a refused
// connection is tried again before it is reported.
package redisstore
