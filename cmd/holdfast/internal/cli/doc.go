// Package cli has what the commands share: the flags of the connection and of the output, checks of
// arguments, completion of names, exit codes, and interrupts.
package cli
