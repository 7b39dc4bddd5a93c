package simulate

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"

	"github.com/holdfast-go/holdfast/proof/embedded"
)

// A host is the embedded server, on a clock of its own.
type host struct {
	*miniredis.Miniredis
	clock   *embedded.Clock
	renewed func(id string) // is told of each renewal

	mu      sync.Mutex
	down    int
	refuses []string // error lines for scripts; the first counts
}

// operator is what the connection of the simulation itself calls itself; nothing is refused to it.
const operator = "operator"

func newHost(s Server, renewed func(id string)) (*host, error) {
	h := &host{Miniredis: miniredis.NewMiniRedis(), renewed: renewed}
	first, err := h.Dial() // starts it
	if err != nil {
		return nil, err
	}
	_ = first.Close()
	h.ClockTTL(true)
	h.clock = embedded.NewDrifting(h.Miniredis, s.Drift)
	h.clock.Show(s.Shows)
	h.Server().SetPreHook(h.handleCommand)
	return h, nil
}

func (h *host) serve(conn net.Conn) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.down > 0 {
		return errors.New("connection refused")
	}
	h.Server().ServeConn(conn)
	return nil
}

// handleCommand sets the clock and refuses what is to be refused. Commands of scripts come from
// nobody; their server is locked, and has the time.
func (h *host) handleCommand(c *server.Peer, cmd string, args ...string) bool {
	if c.ClientName == "" {
		return false
	}
	if cmd == "EVALSHA" {
		h.noteRenewals(args)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clock.Tick()
	if len(h.refuses) > 0 && c.ClientName != operator && strings.HasPrefix(cmd, "EVAL") {
		c.WriteError(h.refuses[0])
		return true
	}
	return false
}

// noteRenewals tells of renewals. Their script alone has five arguments a key, of which the first
// is a ticket with its time: see the package native.
func (h *host) noteRenewals(args []string) {
	const ticket, id = 26, 22
	keys, err := strconv.Atoi(args[1])
	if err != nil || len(args) != 2+6*keys || len(args[2+keys]) != ticket {
		return
	}
	for at := 2 + keys; at < len(args); at += 5 {
		h.renewed(args[at][ticket-id : ticket])
	}
}

func (h *host) withClock(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
	h.clock.Tick()
}
