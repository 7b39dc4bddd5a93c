// Package naive has the locks of the tutorials, written out as the tutorials write them, over
// go-redis. Each file is a lock with a bug that is left in it, and begins with that bug. The
// package is there to be read, and to be seen to fail by the program above it. No other program
// should use it.
//
// A TryLock tries once, and reports whether the caller holds. An Unlock gives the lock back. The
// names of the fields are those of all files: rdb is the client, key the name, id what is unique to
// this caller, ttl the life of the key.
package naive
