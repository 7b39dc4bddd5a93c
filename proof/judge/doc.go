// Package judge has the rules that every part of the proof applies. They say what two holds, two
// tokens or two writes must not do, no matter who watched them and how.
//
// Package history applies them to the records of a run, after it. Package simulate, and the load of
// package harness, apply them to leases while these last. Package linear has them in its model,
// through which porcupine looks for an order of all grants. Each package says itself what it
// excuses, and when.
//
// The rules are written from the promises and share no code with the library. Two other oracles do
// not use them, so that a mistake here cannot hide one there: the protocol in memory, to which
// package model compares the scripts, and the matrix of package storetest.
package judge
