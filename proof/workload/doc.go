// Package workload is what the proof records: processes that use locks in every way a careful or
// careless user might, and a parent that kills, stops and continues them, and troubles the server
// and the network.
//
// A Run starts the processes, each of which runs Worker with the Plan it finds in its environment:
// some goroutines that go on locking, holding and releasing until their standard input ends, so
// that a worker does not outlive its parent. All write down what they do (package history) and
// update a Resource that the parent keeps and that checks tokens. At the end the run waits for the
// processes, reads the history, checks it, and looks at what is left at the server.
package workload
