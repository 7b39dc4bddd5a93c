// Package harness has what tests of locks on real servers share: clients, claims, a room that only
// one may be in, and what a server has of a name.
package harness
