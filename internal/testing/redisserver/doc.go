// Package redisserver starts real server processes for the tests, the benchmarks and the demonstrations of every
// module of this repository. It needs nothing but the standard library and the server's program.
//
//	srv := redisserver.Start(t)                         // ends with the test
//	srv := redisserver.Start(t, "--maxmemory", "3mb")   // one option or value an argument
//	srv, err := redisserver.Run(ctx)                    // outside of tests; ends with Close
//
// Each server listens on a free port of 127.0.0.1, in a directory of its own, and writes nothing to disk unless its
// options say so. It can be stopped and continued, killed, and started again on the same port and directory, and it
// ends with the process that started it, also when that is killed (on Linux).
//
// A Clock starts servers whose clock shows what a test says:
//
//	clock := redisserver.NewClock(t)
//	clock.Show(time.Unix(1, 0))                         // it is 1970 there, and time goes on
//	srv := clock.Start(t)
//
// Several servers that belong together are rigs, for tests alone:
//
//	master, replicas := redisserver.StartReplicated(t, 2)
//	rig := redisserver.StartSentinel(t)                 // a master, two replicas, three sentinels
//	rig := redisserver.StartCluster(t)                  // three masters, three replicas
//
// The program is $REDIS_SERVER, or else redis-server on PATH; valkey-server will do as well.
package redisserver
