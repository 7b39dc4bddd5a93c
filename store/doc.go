// Package store is the seam between holdfast and the clients of Redis and Valkey: the types that an
// adapter implements, and no code.
//
// Users of holdfast get a Store from an adapter, such as redisstore.New, and pass it to
// holdfast.New. They need this package only to name the type, as for holdfast.NewQuorum:
//
//	holdfast.NewQuorum([]store.Store{redisstore.New(a), redisstore.New(b), redisstore.New(c)}, nil)
//
// An adapter has no lock logic, no retries and no batching of its own. The conformance suite in
// package storetest tells whether an implementation keeps the contracts below.
//
// This package is for adapters. It may change before v1.
package store
