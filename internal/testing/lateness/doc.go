// Package lateness plays mixes of holders and waiters of one name on a fake clock, and measures how
// late each waiter entered.
//
// A Mix says which callers ask for the name, when, and how they hold it: with a min hold, with a
// short TTL that is renewed, with a lease that runs out, until a release. Play runs one engine for
// each process over any protocol, and writes down what each request did at the server. From that it
// computes the earliest moment at which each ticket could have entered: the tickets before it in
// the queue are in or have left, and those that hold leave it room.
//
//	synctest.Test(t, func(t *testing.T) {
//		server := memory.New(protocol.Features{Queue: true})
//		run := lateness.Play(mix, func(int) protocol.Protocol { return server.Connect("p") })
//		...
//	})
//
// Nobody crashes and no message is lost: then a waiter enters when it can.
package lateness
