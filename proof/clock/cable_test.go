package clock_test

import (
	"context"
	"net"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/holdfast-go/holdfast/internal/testing/network"
)

// A cable is the network between one client and the server of a scene: silent, slow, losing or cut,
// as a test says.
type cable struct{ *network.Network }

type way = network.Way

const (
	there = network.There // from the client to the server
	back  = network.Back
)

func newCable(server *miniredis.Miniredis) *cable {
	serve := func(conn net.Conn) error { server.Server().ServeConn(conn); return nil }
	return &cable{network.New(serve, network.Config{})}
}

// silence lets nothing arrive any more, both ways or the one that is given, and nothing fail.
func (w *cable) silence(ways ...way) {
	if len(ways) == 0 {
		ways = []way{there, back}
	}
	w.Silence(ways...)
}

func (w *cable) resume() { w.Resume() }

// lose drops what passes with the word in it, so many times.
func (w *cable) lose(way way, word string, times int) {
	w.Strike(network.Rule{Way: way, Match: network.Contains(word), Times: times, Do: network.Lose})
}

// slow delays it, and all that comes behind it on its connection.
func (w *cable) slow(way way, word string, times int, delay time.Duration) {
	w.Strike(network.Rule{Way: way, Match: network.Contains(word), Times: times, Do: network.Delay, Late: delay})
}

// cut breaks all connections, and returns when the server knows; kill also refuses new ones, as
// those of a process that is gone.
func (w *cable) cut() { w.Disconnect(); synctest.Wait() }

func (w *cable) kill() { w.Kill(); synctest.Wait() }

func (w *cable) dial(ctx context.Context, _, _ string) (net.Conn, error) { return w.Dial(ctx) }
