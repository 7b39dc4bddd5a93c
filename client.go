package holdfast

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/classes"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/history"
	"github.com/holdfast-go/holdfast/internal/logging"
	"github.com/holdfast-go/holdfast/internal/native"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/quorum"
	"github.com/holdfast-go/holdfast/internal/remote"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/store"
	"github.com/holdfast-go/holdfast/telemetry"
)

// A Client makes locks and keeps their leases. For all goroutines of its process it has one
// watchdog, one subscription, and one queue for each lock. A process needs one client. All methods
// are safe for concurrent use. Those of the zero Client return errors, except Close.
//
// The handles that it makes ([Mutex], [RWMutex], [Semaphore], [Latch], [Election], [Group]) have no
// state of their own, are cheap, and are safe for concurrent use. To make one sends nothing and
// cannot fail. If a name (1 byte to 1 KiB, any bytes), an option or another argument is bad, each
// method of the handle returns an *ArgumentError. So do the methods of nil and of a zero handle.
type Client struct {
	config Config
	engine *engine.Engine
	remote remote.Channels
	quorum *quorum.Protocol // nil: one server

	classes *classes.Classes // nil: none
	history *history.Recorder
	refused sync.Once // the logger is told that a server refuses Config.Remote
	noCopy  noCopy
}

// New makes a client. It sends nothing, so the first call that asks the server notices that it is
// away. A nil config means the defaults. The store belongs to the caller, who closes it after the
// client. The error is an *ArgumentError with every bad field; the client is then nil.
func New(s store.Store, config *Config) (*Client, error) {
	filled, err := config.withDefaults()
	var bad problems
	if bad.checkStore("store", s); len(bad) > 0 {
		return nil, joinArguments(bad.err("New"), err)
	}
	if err != nil {
		return nil, err
	}
	process, routed := processID(), filled.countRequests(wire.Route(s))
	return newClient(native.New(routed, native.Config{
		Prefix:          filled.Prefix,
		Process:         process,
		Node:            storeAddress(s),
		Timeout:         time.Second,
		Warn:            func(text string) { filled.Logger.Warn("holdfast: " + text) },
		NoEvict:         filled.NoEvict,
		Replicas:        filled.Replicas.Count,
		ReplicasTimeout: filled.Replicas.Timeout,
	}), filled, process, routed), nil
}

// newClient makes a client on any protocol, with the history of its process at the stores, and its
// questions about leases.
func newClient(p protocol.Protocol, config Config, process string, stores ...wire.Store) *Client {
	e := engine.Config{
		ReleaseTimeout: config.ReleaseTimeout,
		Prefix:         config.Prefix,
		RetainMax:      config.RetainMax,
		Logger:         config.Logger,
		Cause:          lostError,
		Closed:         ErrClosed,
		SlowHold:       config.SlowHold,
		SlowWait:       config.SlowWait,
		Slow:           func(event engine.Event, over bool) { logSlow(config.Logger, event, over) },
	}
	c := &Client{config: config, classes: classes.New(config.Class, config.Logger),
		remote: remote.Channels{Stores: stores, Prefix: config.Prefix}}
	if config.Remote {
		e.Answer = c.answerStacks
	}
	c.history = history.New(stores, history.Config{Prefix: config.Prefix, Process: process, Limit: config.History,
		Logger: config.Logger})
	if config.Observer != nil || config.History > 0 {
		e.Observe = c.observe
	}
	if tracer, ok := config.Observer.(telemetry.Tracer); ok {
		e.Trace = func(ctx context.Context) string { return traceText(tracer.Trace(ctx)) }
	}
	c.engine = engine.New(p, e)
	return c
}

// Close ends the client. Waiting calls return ErrClosed, and the contexts of all leases end with it
// as their cause. Close then gives back all leases together, within Config.ReleaseTimeout. The
// error is that of the first lease that could not be given back: its hold is free when its TTL is
// over. A second Close returns nil at once.
func (c *Client) Close() error {
	if c == nil || c.engine == nil {
		return nil
	}
	until := time.Now().Add(c.config.ReleaseTimeout)
	err := c.engine.Close()
	if c.quorum != nil {
		c.quorum.Close(until)
	}
	c.history.Close(until)
	logging.Flush(c.config.Logger, until)
	return publicError("close", "", err)
}

// Ready reports whether the servers can serve this client, for readiness probes. It takes nothing
// and writes no key. It lasts at most the smaller of ctx and 1 s, of which half is for the question
// of what the servers are.
//
// Nil says that every master answered, runs the scripts of this client, and accepts writes. No
// master said that it may evict keys: with maxmemory and a policy other than noeviction, a server
// may evict a hold. That needs the permission of INFO; a server that refuses it counts as one that
// evicts nothing. Ready does not try every permission that an operation may need, and does not look
// for known flaws of the server: holdfast doctor does.
//
// Of a quorum, a majority of masters that count must be ready; Ready then waits 50 ms for the
// others. A master that may evict keys is an error there too, and so is a server that two stores
// lead to. One that no client has asked before notes when its memory began, as with any call.
//
// The errors are those of every call. The Kind of a *StoreError says why, such as StoreLoading,
// StoreReadOnly (a replica), StoreEvicts or StoreSameServer. A *QuorumError says that there is no
// such majority. It does not match ErrUnavailable if waiting cannot cure that.
func (c *Client) Ready(ctx context.Context) error {
	var bad problems
	bad.check(c != nil && c.engine != nil, "Client", nil, "made by New or NewQuorum")
	bad.check(ctx != nil, "ctx", nil, "not nil")
	if err := bad.err("Client.Ready"); err != nil {
		return err
	}
	return operatorError("ready", "", c.engine.Probe(ctx))
}

// noCopy makes go vet refuse copies.
type noCopy struct{}

// Lock does nothing.
func (*noCopy) Lock() {}

// Unlock does nothing.
func (*noCopy) Unlock() {}
