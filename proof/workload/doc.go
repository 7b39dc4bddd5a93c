// Package workload is what the proof records: processes that use locks in every way that a careful
// or careless user might. A parent kills, stops and continues them, and troubles the server and the
// network.
//
// A Run starts the processes. Each runs Worker with the Plan that it finds in its environment: some
// goroutines go on locking, holding and releasing until their standard input ends, so that a worker
// does not outlive its parent. All write down what they do (package history) and update a Resource,
// which the parent keeps and which checks tokens. At the end the run waits for the processes, reads
// the history, checks it, and looks at what is left at the server.
package workload
