// Package memory keeps names in the memory of this process. It is the engine's own test fake. It
// gives the same answers as the scripts of package native, from plain Go under one mutex, with a
// queue or without.
//
// A Server stands for the server and a Client for the connection of one process to it:
//
//	server := memory.New(protocol.Features{Queue: true})
//	one, other := server.Connect("prefix"), server.Connect("prefix")
//
// Nothing happens by itself: as at a real server, the next request finds a hold whose time is over.
// Without a queue, an Ask that wants to join is answered Busy, and its ticket is remembered. When
// the name is free, all of these tickets are nudged once, in the order in which they asked.
package memory
