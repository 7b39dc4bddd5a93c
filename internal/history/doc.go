// Package history keeps what happened to locks in streams at the servers, for people to read later.
// No lock depends on it: a Recorder drops what it cannot write, and says so once.
//
// # Streams
//
// Each class of names has one stream at each master, PREFIX:{%history:CLASS}, of about as many
// entries as its writers keep (MAXLEN ~). Where names have no class, CLASS is empty. No name's key
// has that tag, so no script and no list takes a stream for a lock. On a cluster its slot is its
// own, and the entries of one class burden one master.
//
// At a quorum each entry goes to every master, by a queue for each: one that is away delays no
// other. An entry has the process that wrote it and a number. A Reading merges the masters by
// these, and a minority that does not answer is no error. Numbers that are missing were dropped.
//
// # Entries
//
// An entry has these fields, except those that are empty. A reader skips fields and entries that it
// does not know. Texts are any bytes, of at most 1 KiB.
//
//	process, number     who wrote it: the id of the client; and the how manieth of it
//	first               the number of the grant, if this is the grant as well as its end
//	event, name, kind   as lockinfo.Entry: Kind, Name, LockKind
//	label, owner        of the caller
//	token               of the lease
//	waited, held, ago   microseconds; ago is from what happened to the sending of the entry
//	holder, by, reason  as lockinfo.Entry
//
// The id of an entry is the server's time of writing it, so its At is that time less ago.
//
// # Writing
//
// A lease that ended before its grant was written has one entry, of its end, which has what the
// grant waited for too. A reader makes two of it. That halves the cost of short leases.
//
// A lock, a release and a renewal add an entry to a queue, and send nothing. One goroutine for each
// store writes, and lives while there is something to write. It gathers for 100 ms, or until 1,024
// entries wait, and sends them in flushes of 64, one after the other. While 4,096 entries wait,
// later ones are dropped. An entry is sent once, and dropped if the server refuses it or does not
// answer. The logger is told of the first of a stream, and when the stream is written again how
// many were dropped. Close writes what waits, until a moment.
package history
