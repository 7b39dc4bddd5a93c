// Package model compares the scripts at a real server with the protocol in memory. This is the
// engine's test fake, and so small that it can be read as the definition of which holds exclude
// each other and which waiter is next.
//
// Both get the same random requests of a few clients about one name: asks of every kind, replays,
// permits, leaving, downgrading, resizing. Each answer must agree in what it says, and so must the
// messages that hand the name over, and what Inspect tells after each request. Time stands still,
// as far as anything here lasts. What ends by itself is compared in stories of the small worlds of
// proof/explore, on an embedded server and a fake clock: random ones, or the one in HOLDFAST_STORY.
package model
