package native

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Config is what a Protocol needs to know.
type Config struct {
	Prefix  string        // of keys and channels, without braces
	Process string        // names this client, and its channel: host, process and a random part
	Node    string        // the only server's address, for errors; empty: not known, or several
	Timeout time.Duration // of one request, at most

	// Warn gets once what users should know of the server, by what it says of itself; nil: nobody
	// does.
	Warn func(text string)

	NoEvict         bool // the servers keep clocks and holds from eviction
	Replicas        int  // how many must confirm what is to be trusted; 0: none
	ReplicasTimeout time.Duration
}

// Protocol implements protocol.Protocol on one store: a single server, a master that sentinels
// name, or a cluster.
type Protocol struct {
	config  Config
	scripts *scripts
	servers *wire.Servers
	usual   atomic.Pointer[usualPayload]     // the one that was made last
	recent  [recent]atomic.Pointer[resource] // by a hash of the name, with this seed
	seed    maphash.Seed
	marked  atomic.Pointer[string] // the mark of our channels; nil: not known yet what is behind the store
}

// recent is how many resources a Protocol keeps at most.
const recent = 256

// New makes a Protocol. It sends nothing.
func New(s wire.Store, config Config) *Protocol {
	return &Protocol{
		config:  config,
		scripts: loadScripts(config.NoEvict),
		servers: wire.NewServers(s),
		seed:    maphash.MakeSeed(),
	}
}

// Features implements protocol.Protocol.
func (p *Protocol) Features() protocol.Features {
	return protocol.Features{Queue: true, Confirm: p.config.Replicas > 0}
}

// Bind implements protocol.Protocol.
func (p *Protocol) Bind(spec protocol.Spec) protocol.Resource {
	return p.bind(spec)
}

// run sends a script by its digest, and whole where the server does not know it. The first two
// words are free for that.
func (p *Protocol) run(ctx context.Context, s *script, k *keys, deadline time.Time, words []any) wire.Reply {
	server := p.servers.Serving(k.slot)
	request := wire.Request{Op: s.Op, Args: s.ByDigest(words), Key: k.state.(string)}
	if s.trusted {
		p.requireReplicas(&request, deadline)
	}
	reply := server.Do(ctx, request, deadline)
	if !wire.IsUnknownScript(reply) {
		return reply
	}
	if s.trusted {
		p.requireReplicas(&request, deadline)
	}
	request.Args = s.Whole(words)
	return server.Do(ctx, request, deadline)
}

// requireReplicas asks for the replicas that make a request worth trust. They have less time than
// the request, so that their number arrives.
func (p *Protocol) requireReplicas(request *wire.Request, deadline time.Time) {
	if p.config.Replicas > 0 {
		request.Replicas = p.config.Replicas
		request.ReplicasTimeout = wire.Millis(min(p.config.ReplicasTimeout, time.Until(deadline)/2))
	}
}

// unconfirmed is the failure of a request that took effect at a server, but not at as many replicas
// as must have it.
func (r *resource) unconfirmed(op string, reply wire.Reply) error {
	want := r.p.config.Replicas
	if reply.Replicas >= want {
		return nil
	}
	return &protocol.Failure{Op: op, Name: r.spec.Name, Reason: protocol.NoReplicas, Unknown: true,
		Err: fmt.Errorf("%d of %d replicas confirmed in time", reply.Replicas, want)}
}

// Ready implements protocol.Protocol.
func (p *Protocol) Ready(ctx context.Context, name string) error {
	if p.marked.Load() != nil {
		return nil
	}
	return p.learnTopology(ctx, "lock", &resource{p: p, spec: protocol.Spec{Name: name}}, p.deadline(ctx))
}

// Probe implements protocol.Protocol.
func (p *Protocol) Probe(ctx context.Context) error {
	err := wire.Probe(ctx, p.servers, p.readyKey, p.config.NoEvict)
	var failure *protocol.Failure
	if errors.As(err, &failure) && failure.Node == "" {
		failure.Node = p.config.Node
	}
	return err
}

// readyKey is the key in a slot that no client ever writes.
func (p *Protocol) readyKey(slot int) string {
	return p.config.Prefix + ":{" + wire.SlotTag(slot) + "}:ready"
}

// learnTopology asks once what is behind the store, before the first request that may leave
// something behind; op is that request. A payload has the mark of a channel, and must not change
// while its ticket lives.
func (p *Protocol) learnTopology(ctx context.Context, op string, r *resource, deadline time.Time) error {
	if p.marked.Load() != nil {
		return nil
	}
	topology, err := p.servers.Topology(ctx, deadline)
	if err != nil {
		return r.failure(op, wire.Reply{Err: err, Unsent: true})
	}
	mark := plain
	switch {
	case topology.Cluster && topology.ShardedPubSub:
		mark = sharded
	case topology.Cluster:
		mark = broadcast
	}
	if p.marked.CompareAndSwap(nil, &mark) && p.config.Warn != nil {
		for _, text := range wire.Warnings(topology, p.config.NoEvict) {
			p.config.Warn(text)
		}
	}
	return nil
}

// The marks of a channel: see listens in messages.lua.
const (
	plain     = "p"
	broadcast = "c"
	sharded   = "s"
)

// channelFor is the channel on which a process gets messages about a name, with its mark, as
// payloads have it. A sharded channel lies in the slot of the name, so there is one a slot.
func (p *Protocol) channelFor(k *keys, process string) string {
	mark := p.marked.Load()
	switch {
	case mark == nil:
		return plain + p.config.Prefix + suffix(process) // of a ticket that was never sent
	case *mark == sharded:
		return sharded + p.config.Prefix + ":{" + wire.SlotTag(k.slot) + "}" + suffix(process)
	}
	return *mark + p.config.Prefix + suffix(process)
}

// suffix ends all channels of a process.
func suffix(process string) string { return ":@" + process }

// ticketProcess stands for whichever process waits with the ticket of a kept place. No process is
// named so: the name of a process has two slashes.
func ticketProcess(id protocol.ID) string { return "ticket/" + string(id) }

// notAfter is the last server time at which a request with this deadline may take effect. Before
// anything is known of the server's clock, the server is asked for it.
func (p *Protocol) notAfter(ctx context.Context, op string, r *resource, deadline time.Time) (string, error) {
	s := p.servers.Serving(r.keys.slot)
	if at, ok := s.Clock.NotAfter(deadline); ok {
		return at, nil
	}
	if _, err := p.askTime(ctx, r, op, deadline); err != nil {
		return "", err
	}
	at, _ := s.Clock.NotAfter(deadline)
	return at, nil
}

// askTime asks the server of a name for its time, in microseconds.
func (p *Protocol) askTime(ctx context.Context, r *resource, op string, deadline time.Time) (int64, error) {
	s := p.servers.Serving(r.keys.slot)
	reply := s.Do(ctx, wire.Request{Op: "time", Args: []any{"TIME"}, Key: r.keys.state.(string)}, deadline)
	if err := r.failure(op, reply, r.keys.state); err != nil {
		return 0, err
	}
	server, ok := wire.ServerTime(reply.Value)
	if !ok {
		return 0, r.at(reply, r.unreadable(op, reply.Value))
	}
	received := time.Now()
	if p.config.NoEvict { // a server that is new to this client
		reply := s.Do(ctx, wire.BlessRequest(op, p.readyKey(r.keys.slot)), deadline)
		if reply.Err != nil || wire.CannotBless(reply) {
			return 0, r.failure(op, reply)
		}
	}
	s.Clock.Observe(server, received)
	return server, nil
}
