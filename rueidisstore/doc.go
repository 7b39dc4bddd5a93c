// Package rueidisstore lets holdfast speak to Redis and Valkey through a rueidis client.
//
//	rdb, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"localhost:6379"}})
//	...
//	client, err := holdfast.New(rueidisstore.New(rdb), nil)
//
// # What is accepted
//
// [New] takes what rueidis.NewClient returns: a client of one server, of the master that sentinels
// name, or of a Redis Cluster. Nil is refused. A client that reads from replicas alone
// (ReplicaOnly) cannot lock: its servers refuse.
//
// # What happens to the client
//
// The store leaves the client's options and its life to the caller. Closing the client closes the
// store's way to the server, so close the holdfast client first. The store never uses client-side
// caching.
//
// Requests go through the connections that rueidis keeps for blocking commands (BlockingPoolSize).
// They do not use the connections on which rueidis pipelines the commands of all callers. A request
// therefore waits behind no other command. Its time-out ends only its own connection, and the next
// attempt uses another. A request that waits for replicas delays no other request.
//
// A holdfast client has at most two requests for each server under way, so few such connections are
// made. Waiting takes one more connection. On a cluster with sharded channels, the channels with a
// hash tag take one more for each node.
//
// If a request has no answer, or a server says that it is a replica, the store closes the
// connections for blocking commands that rest, also those that the caller's commands have used. So
// the next request goes over a new one. What is under way goes on, and the connections on which
// rueidis pipelines stay as they are.
//
// Each request is sent once, whatever DisableRetry and ConnLifetime say. The deadline of ctx takes
// the place of the client's ConnWriteTimeout. Without a deadline the limit is ten seconds. A ctx
// that is cancelled ends the waiting for a connection, but not the waiting for an answer. A DialFn
// that takes no context is bounded by its own time-outs alone; DialCtxFn is better.
//
// rueidis finds out that a connection was lost when it next uses the connection, or pings. After a
// restart of the server the first request may therefore fail, with an outcome that is not known.
package rueidisstore
