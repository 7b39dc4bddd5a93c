// Package quorum shows what holdfast.NewQuorum survives: real masters that are killed, stopped,
// emptied, slow, or whose clocks lie. The clients write down what they were told, and package
// history checks it. It has tests alone.
//
// All of it runs with HOLDFAST_PROOF=1 alone. Tests of clocks need libfaketime.
package quorum
