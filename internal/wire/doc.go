// Package wire is the plumbing under the wire formats: how requests travel to servers, and what can
// be read from an answer before a format reads what it means. Packages native and quorum are
// formats. They keep keys, scripts, and what replies mean.
//
// The package knows package store below it, and of package protocol above it only the errors:
// Failure, Foreign and Reason.
//
// # Who owns what
//
//	Store         requests by their keys, and subscriptions: Route makes it of what an adapter brings
//	Batcher       the requests of many goroutines to one server
//	Clock         the bounds of one server's time
//	Server        one server behind a store: its Batcher and its Clock
//	Servers       all servers behind a store, and which of them serves a slot
//	Script        the text of a script, and what a refusal says of the line that raised it
//	SlotChannels  the channels of one subscription where channels are sharded
//	Subscribe     one channel at one server, for as long as its context lives
//	Scan          the keys of all masters
//
// A format makes one Servers for a store, or one Batcher and one Clock for each of several stores.
// The store stays its caller's: nothing here closes it. All types are safe for concurrent use.
//
// # Batching
//
// While few requests are under way, each goes at once. Its caller's goroutine sends it if the
// caller cannot be cancelled, or if the server answered within the last second. Such a caller
// learns of the end of its context when the store returns, at its deadline at the latest.
//
// Requests that come while more are under way travel together in the next batch. At most three
// batches are under way to a server at one time. No batch carries more than its share, as the
// server would rest while the goroutines work, and the goroutines while the server does.
//
// A batch's context ends at the latest deadline of its requests. A caller whose request travels in
// a batch waits no longer than for its own context or its own deadline:
//
//   - If the request still stands in the queue, it is taken out. The reply says that it is unsent.
//   - If the request is under way, its outcome is unknown. A reply that comes later is dropped.
//   - If the deadline is over before the batch is sent, the request is left out of the batch. The
//     reply says that it is unsent.
//
// # Time
//
// The clock of a server is bounded by its answers. An answer with the server's time s was decided
// after its request was sent and before it was received. A request that may win something carries a
// "not after" in the server's own time, which is the earliest that its clock can show at the
// request's deadline. A Clock forgets nothing and judges nothing: the newest answer counts, and
// after a minute without one the server must be asked. The clocks of two servers have nothing to do
// with each other.
//
// # Scripts
//
// A script goes over the wire by its digest, which is a constant. A server that does not know the
// script says NOSCRIPT and has done nothing. So the script is sent again, whole. That is no
// repetition. The format sends it, as a quorum has to do something before.
//
// # Failures
//
// Script.Failure reads from the first word of a refusal why it came. The words are the same on
// every server and version. The texts behind them are not.
//
//	refused, by no script                nothing was done
//	refused before the script writes     nothing was done
//	refused in the middle of a script    what it wrote before stays: Unknown, if a line before may
//	                                     have written
//	of another type                      Foreign, which names the key, if nothing was written; else
//	                                     a Failure that names it
//	no answer                            Unknown, unless the store knows that nothing was sent
//
// Servers say the number of the line that raised a refusal, and some say nothing else. The line is
// looked up in the text of the script. Of an unknown line nothing is known, so something may have
// been written.
//
// # Routing
//
// A router sends a request to the master that serves its key, by a slot table of its own. It
// reads the table by CLUSTER SLOTS, from four nodes at once, and takes the first answer. All
// requests for one node go in one flush on one connection. A WAIT behind them counts for all of
// them, as it counts the replicas that have everything written on its connection.
//
//	the node says                    the router
//	MOVED, ASK                       sends it on, at most three times: it was not carried out
//	MOVED, ASK, once too often       says TRYAGAIN
//	READONLY, CLUSTERDOWN            reports it, and reads the table anew in the background
//	nothing, and it is unsent        sends the request where the slot is served by now, if elsewhere
//	nothing, and it may be written   reports it, never sends it again
//	REDIRECT                         reports it; the client learns of the new master
//
// If the client has not met a node, it is made to, and the request then goes there. If it cannot,
// the request is unsent, or was refused with TRYAGAIN. A request that names its node goes nowhere
// else. If a store returns fewer replies than commands, the rest have errors of unknown outcome.
//
// # Useless connections
//
// What one connection shows is likely to be true of the others in its pool, which would be given to
// one request after the other. So the connections to a node are renewed, and the next request goes
// over a new one:
//
//	a request over one     why the others are likely to be of no use
//	has no answer          a NAT or a balancer has forgotten them, or their node died
//	READONLY, MASTERDOWN,  it leads to a former master, although the address leads to the new one:
//	UNBLOCKED              nobody closes the connections to a master that is demoted
//	LOADING, NOREPLICAS    perhaps the same: at most every 5 s, as the server may be the right one
//
// Inside a script these words may stand behind others (reasonOf). A connection that is younger than
// 100 ms is not renewed again. Once a request is answered after such a refusal, the connections for
// messages are made again, too. A renewal holds up no reply. It holds up the next requests to its
// node, for at most 250 ms, and for at most half of their own time.
//
// A store renews by ending the connections of its client's pool that rest. What is under way is
// left alone, and so are connections that carry the commands of several callers at a time.
//
// # Slots
//
// Above the router, which server serves a slot is a hint. It decides which requests travel together
// and which clock counts; the router decides where a request goes. The kind of servers behind a
// store is asked once. One first question is under way at a time, for all callers, and none of them
// can cancel it for the others. If it fails, the next caller asks again. After a failed request the
// answer is doubtful, and is asked for again, at most once a second; without a new answer the old
// one stays.
//
// # Connections for messages
//
// One goroutine owns a subscription, with all its channels and connections. It never waits for a
// server. Each connection has a goroutine that connects and writes, and reports back.
//
//	unplaced -> asked -> confirmed      a channel; from asked and confirmed back to unplaced,
//	                                    when its slot moved or its connection was lost
//	none -> connecting -> up -> none    a connection, for as long as it has channels
//
// A connection that is lost is made again, after a pause of 10 ms that doubles up to 2 s. A call
// of Add ends the pause: its caller paces the attempts, and is told the reason of each that never
// heard the server. After 5 s in which nothing was heard, a channel is asked for again, as a sign
// of life. After 5 s more the connection is given up. A connection without channels is closed
// after 10 s.
//
// On a cluster, a channel with a hash tag is on a connection to the node that serves its slot. It
// leaves that connection when the server takes the channel away or refuses it by MOVED, when the
// slot table names another node, and when the connection is lost. Other channels are on one
// connection to any master, another one after each loss. If the servers know no sharded channels,
// all channels are there.
//
// Messages may have been missed by a channel that was confirmed before, and whose connection was
// lost or changed. The sink is told of the gap by the connection that the channel is on then,
// when all channels of that connection are confirmed again. So no message that is published after
// the gap is missed. The answer to a question counts only if no later question about the same
// channel is without an answer.
//
// A channel that the server refuses is given up, and Add returns the refusal. If the channel was
// allowed before, only NOPERM says so; any other refusal ends the connection, and the next one
// asks again.
//
// # Subscriptions of a format
//
// SlotChannels adds a channel for a slot when a caller first waits there, and removes it after 30
// s in which no caller waited. A caller that ends cannot cancel it for the others. If the server
// refuses, all callers that wait get the error, and the next caller tries again. Subscribe tries
// again each second until it has a subscription, and then tells of a gap, as messages were missed
// until then.
package wire
