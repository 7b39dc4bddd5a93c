// Package rueidisstore lets holdfast speak to Redis and Valkey through a rueidis client.
//
//	rdb, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"localhost:6379"}})
//	...
//	client, err := holdfast.New(rueidisstore.New(rdb), nil)
//
// # What is accepted
//
// [New] takes what rueidis.NewClient returns: a client of one server, of the master that sentinels name, or of a Redis
// Cluster. Nil is refused. A client that reads from replicas alone (ReplicaOnly) cannot lock: its servers refuse.
//
// # What happens to the client
//
// Nothing: the store uses its connections and leaves its options and its life to the caller. Closing the client closes
// the store's way to the server; close the holdfast client first. Client-side caching is never used, whether the client
// has it switched on or not.
//
// Requests go through the connections that rueidis keeps for blocking commands (BlockingPoolSize), not through those
// on which it pipelines everybody's commands: a request waits behind nobody, its time-out ends nothing but its own
// connection, the next attempt is made on another, and what waits for replicas holds nobody up. A holdfast client has
// two requests a server under way at most, so that few such connections come to be. Waiting takes one more; on a cluster, where
// channels with a hash tag are sharded, one more a node.
//
// Each request is sent once, whatever DisableRetry and ConnLifetime say. The deadline of ctx takes the place of the client's
// ConnWriteTimeout; without a deadline it is ten seconds. A ctx that is cancelled ends the waiting for a connection, but not
// that for an answer. A DialFn that takes no context is bounded by its own time-outs alone; DialCtxFn is better.
//
// rueidis finds out that a connection was lost when it is next used, or pings. After a restart of the server the first
// requests may therefore fail, with an outcome that is not known.
package rueidisstore
