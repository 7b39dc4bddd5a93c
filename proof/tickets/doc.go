// Package tickets passes leases through chains of short-lived processes, by tickets, over a real
// server. It has tests alone.
//
// A chain is a lease. Its first process takes the lock and detaches it, each further one attaches
// it, and the last one gives it back. Some chains begin at a kept place, where one process after
// the other waits for a moment. Processes are killed with kill -9 between any two steps: after
// Ticket, in Attach, while they hold, after Detach, after Attach, and before Release. Some
// tickets are thrown away. All processes write down what they do (package history), and the history
// is checked.
//
// Chains run with HOLDFAST_PROOF=1 alone.
package tickets
