// Package traps tests clients on real servers, where nothing less shows the promise: keys of other
// programs, the format, tokens, what servers refuse. Each test says in its comment into which trap
// of lock libraries it would see us fall; docs/traps.md lists the traps by their numbers. It has
// tests alone.
package traps
