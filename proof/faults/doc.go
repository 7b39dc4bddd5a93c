// Package faults does one thing at a time to servers, networks and processes while many
// clients lock, and prints what it cost. It has tests alone.
//
// TestFaults does each fault on every topology that it applies to: a single server, Sentinel, a
// Cluster, and a quorum of three masters, all real servers of this machine. The other tests are
// about what only one topology has. proof/README.md has the table, and says why a fault does not
// apply somewhere.
//
// All run with HOLDFAST_PROOF=1; HOLDFAST_FAULTS=20 makes everything twenty times as long.
package faults
