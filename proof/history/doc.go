// Package history writes down what the processes of a workload did, reads it back and checks it.
// The document of package proof says what is recorded and checked, and against which clock.
//
//	Recorder -> a file a process -> Load -> []Record -> Assemble -> History{Ops, Holds} -> Check -> []Violation
package history
