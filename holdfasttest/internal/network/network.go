// Code generated from internal/network by TestNetworkTwin; DO NOT EDIT.

// Package network is a network inside a process, between clients and a server, that obeys: it holds bytes back, delays
// them and loses them when told to. As in a real one, writing into silence succeeds, and what was written before a
// client gave its connection up still arrives afterwards. Made inside a bubble of testing/synctest it goes by the
// bubble's clock.
package network

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync"
	"time"
)

// A Network carries connections to one server. All methods are safe for concurrent use.
type Network struct {
	server func() (net.Conn, error)

	mu      sync.Mutex
	moved   *sync.Cond // something below, or in a link, has changed
	paused  bool
	closed  bool
	delay   time.Duration
	answers []string // words of requests whose answers get lost
	lost    []string // words of requests that get lost themselves
	links   map[*link]bool
}

// New makes a network. Server makes a connection to the server and returns its near end.
func New(server func() (net.Conn, error)) *Network {
	n := &Network{server: server, links: map[*link]bool{}}
	n.moved = sync.NewCond(&n.mu)
	return n
}

// Dial connects, in silence when ctx ends or the silence does.
func (n *Network) Dial(ctx context.Context) (net.Conn, error) {
	stop := context.AfterFunc(ctx, n.wake)
	defer stop()
	n.mu.Lock()
	defer n.mu.Unlock()
	for n.paused && !n.closed && ctx.Err() == nil {
		n.moved.Wait()
	}
	err := ctx.Err()
	if n.closed {
		err = net.ErrClosed
	}
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
	}
	server, err := n.server()
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
	}
	outer, inner := net.Pipe()
	l := &link{n: n, client: inner, server: server}
	n.links[l] = true
	l.start()
	return outer, nil
}

// Pause makes the network silent, in both directions: nothing arrives and nothing fails. New connections hang.
func (n *Network) Pause() { n.change(func() { n.paused = true }) }

// Resume ends the silence. What was written meanwhile arrives, also on connections that were given up.
func (n *Network) Resume() { n.change(func() { n.paused = false }) }

// Delay makes all that the server sends from now on arrive so much later; 0 ends that.
func (n *Network) Delay(d time.Duration) { n.change(func() { n.delay = d }) }

// DropAnswer loses the answer to the next request in which the word occurs, in any case of letters: the request is
// carried out, and its connection is silent from then on.
func (n *Network) DropAnswer(word string) {
	n.change(func() { n.answers = append(n.answers, word) })
}

// DropRequest loses the next request in which the word occurs: it is not carried out, and its connection is silent from
// then on.
func (n *Network) DropRequest(word string) { n.change(func() { n.lost = append(n.lost, word) }) }

// Disconnect closes all connections. What is under way on them is lost.
func (n *Network) Disconnect() { n.disconnect(func(*link) bool { return true }) }

// Close ends the network: all connections are closed, and none can be made.
func (n *Network) Close() {
	n.change(func() { n.closed = true })
	n.Disconnect()
}

// DisconnectListeners closes the connections on which clients have subscribed.
func (n *Network) DisconnectListeners() { n.disconnect(func(l *link) bool { return l.listens }) }

func (n *Network) disconnect(which func(*link) bool) {
	n.change(func() {
		for l := range n.links {
			if which(l) {
				l.cut = true
				_ = l.client.Close()
				_ = l.server.Close()
			}
		}
	})
}

func (n *Network) change(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
	n.moved.Broadcast()
}

// wake makes all who wait look again.
func (n *Network) wake() { n.change(func() {}) }

// struck takes the word that occurs in the request off the list. mu is held.
func struck(words *[]string, request []byte) bool {
	for i, word := range *words {
		if contains(request, word) {
			*words = append((*words)[:i:i], (*words)[i+1:]...)
			return true
		}
	}
	return false
}

func contains(request []byte, word string) bool {
	return bytes.Contains(bytes.ToLower(request), []byte(strings.ToLower(word)))
}
