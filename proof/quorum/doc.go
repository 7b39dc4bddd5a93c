// Package quorum shows what holdfast.NewQuorum survives: real masters that are killed, stopped,
// emptied, slow, or whose clocks lie, under clients that write down what they were told, as package
// history checks it. It has tests alone.
//
// Those that take long run with HOLDFAST_CHECK=1. Those of clocks need libfaketime.
package quorum
