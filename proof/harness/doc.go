// Package harness has what tests of locks on real servers share: the servers of each topology
// (Deploy) and the routes to them, clients, a load that is judged while it lasts, children, and
// what a server has of a name.
package harness
