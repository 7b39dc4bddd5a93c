// Package history writes down what the processes of a workload did, reads it back and checks it by
// the rules of package judge. The document of package proof says what is recorded and checked, and
// against which clock. Recorder.Run writes down an operation, Recorder.Take a lock, and a Lease
// what is done with it and what the library says of it.
//
//	Recorder -> a file a process -> Load -> []Record -> Assemble -> History -> Check -> []Violation
package history
