// Package remote asks the processes of holders which call took a lease, and answers for this one.
//
// # Channels
//
//	PREFIX-remote:ask          questions, to all clients that answer
//	PREFIX-remote:answer:ID    the answers to one question
//
// They are channels of their own: no pattern PREFIX:* matches them, which is what users of locks
// are granted. So who may ask is who may publish on the first and subscribe to the second. The
// channels are not sharded: a cluster carries what is published there to all of its nodes. Of a
// quorum every master is asked, and each answer may come several times.
//
// # Messages
//
//	1 ID NAME              a question: format, 22 random characters, the name     (without spaces)
//	1 TOKEN newline JSON   an answer: format, the token of the hold, what is told of it (Report)
//
// A message of another format is ignored, and so is one that is not whole. An answer proves
// nothing: whoever may subscribe to questions and publish may answer. Its id is random, so nobody
// else can. It tells functions, the base names of files, and lines. It has no arguments of calls.
//
// # What it costs a process that answers
//
// One subscription while it has leases, with the sign of life of a subscription, and for each lease
// a stack of at most 32 frames. Nothing is published while nobody asks. Questions are answered one
// after the other, at most 100 a second; beyond 8 that wait they are dropped. An answer has at most
// 16 KiB. No lock waits for any of that, but for the moment in which the holds are looked at.
//
// If a server refuses the subscription, or an answer, that is told once, and this server is left
// alone until the client begins to hold again after a pause.
package remote
