// Package redisserver starts real server processes for the tests, the benchmarks and the
// demonstrations of every module of this repository. It needs nothing but the standard library and
// the server's program.
//
//	srv := redisserver.Start(t)                         // ends with the test
//	srv := redisserver.Start(t, "--maxmemory", "3mb")   // one option or value an argument
//	srv, err := redisserver.Run(ctx)                    // outside of tests; ends with Close
//
// Each server listens on a free port of 127.0.0.1, in a directory of its own, and writes nothing to
// disk unless its options say so. A test can stop a server and continue it. It can kill a server,
// and start it again on the same port and directory. A server ends with the process that started
// it, on Linux even if that process is killed.
//
// A Clock starts servers whose clock shows the time that a test sets:
//
//	clock := redisserver.NewClock(t)
//	clock.Ahead(time.Hour)                              // its time goes on from there
//	srv := clock.Start(t)
//
// A rig is several servers that belong together, for tests alone:
//
//	master, replicas := redisserver.StartReplicated(t, 2)
//	rig := redisserver.StartSentinel(t)                 // a master, two replicas, three sentinels
//	rig := redisserver.StartCluster(t)                  // three masters, three replicas
//
// The program is $REDIS_SERVER, or else redis-server on PATH. valkey-server works as well.
package redisserver
