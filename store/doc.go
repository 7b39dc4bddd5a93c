// Package store is the seam between holdfast and the clients of Redis and Valkey: the types that an
// adapter implements, and a few lines that all adapters need.
//
// Users of holdfast get a Store from an adapter, such as redisstore.New, and pass it to
// holdfast.New. They need this package only to name the type, as for holdfast.NewQuorum:
//
//	holdfast.NewQuorum([]store.Store{redisstore.New(a), redisstore.New(b), redisstore.New(c)}, nil)
//
// # What an adapter does
//
// An adapter carries commands to a node that is named, and opens a connection for messages at a
// node that is named. It has no lock logic, no retries and no batching. It reads no redirect,
// follows no slot, and does not connect again. All that is above the seam, once for all adapters:
//
//	above, in holdfast                       below, in an adapter
//	which node serves a slot                 which nodes the client has met (Nodes, Refresh)
//	MOVED, ASK, WAIT, what may go elsewhere  one flush to one connection, each command once (Do)
//	which connection is of no use            the next one is new (Renew)
//	which channel is subscribed where        one connection for messages (Listen)
//	pauses, signs of life, gaps              what the server said on it, and why it ended (Events)
//
// # Words
//
// A node is one server, by the address that the client dials. The empty name leads where the
// client's own routing leads: to the only server, or to the master that sentinels name now. On a
// cluster every node is named.
//
// A command is sent once if the adapter and its client library write it at most once, whatever
// happens. Commands reach a connection in order if the server reads them in the order of the
// slice, with no other command between, also not one of another goroutine. A command is unsent if
// no byte of it was written. A command that may have been written is never called unsent:
// holdfast sends an unsent command again, elsewhere.
//
// # Is it right
//
// The function Seam of package storetest tests these contracts, one by one. The conformance suite
// in the same package tests that locks work on top of them.
//
// This package is for adapters. It may change before v1.
package store
