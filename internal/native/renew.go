package native

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

const (
	renewBatch = 100 // names in one command: enough to be cheap, few enough not to hold up others
	renewLoad  = 128 // commands in one flush to a server
)

// Renew implements protocol.Protocol. On a single server a command carries many names; on a cluster
// those of one slot. Each server gets its commands apart from the others, so a server that is slow,
// stopped or gone delays no lease of another. The watchdog's commands go past the batcher, where
// all wait for the slowest server.
func (p *Protocol) Renew(ctx context.Context, renewals []protocol.Renewal, done func(i int, r protocol.RenewalAnswer)) {
	if ctx.Err() != nil {
		for i, renewal := range renewals {
			r := renewal.Resource.(*resource)
			done(i, protocol.RenewalAnswer{Err: r.failure("renew", wire.Reply{Err: protocol.EndOf(ctx), Unsent: true})})
		}
		return
	}
	deadline := p.deadline(ctx)
	var wg sync.WaitGroup
	servers := make(map[*wire.Server][][]int) // the parts of each
	for slot, group := range p.groups(ctx, renewals, deadline) {
		for part := range slices.Chunk(group, renewBatch) {
			if slot < 0 || ctx.Done() != nil { // a caller may cancel it: the batcher heeds that
				wg.Go(func() { p.renew(ctx, renewals, part, deadline, done) })
				continue
			}
			server := p.servers.Serving(slot)
			servers[server] = append(servers[server], part)
		}
	}
	for _, parts := range servers {
		wg.Go(func() {
			for load := range slices.Chunk(parts, renewLoad) {
				p.renewAt(renewals, load, deadline, done)
			}
		})
	}
	if len(servers) > 0 && p.servers.Doubted() {
		wg.Go(func() { p.servers.Refresh(deadline) })
	}
	wg.Wait()
}

// groups are the renewals that may share a command, by slot; on a single server all, as -1.
func (p *Protocol) groups(ctx context.Context, renewals []protocol.Renewal, deadline time.Time) map[int][]int {
	topology, err := p.servers.Topology(ctx, time.Now().Add(time.Until(deadline)/2))
	apart := err != nil || topology.Cluster // slot by slot is right everywhere
	groups := make(map[int][]int)
	for i, renewal := range renewals {
		group := -1
		if apart {
			group = renewal.Resource.(*resource).keys.slot
		}
		groups[group] = append(groups[group], i)
	}
	return groups
}

// renew sends one command by the batcher.
func (p *Protocol) renew(ctx context.Context, all []protocol.Renewal, part []int, deadline time.Time,
	done func(int, protocol.RenewalAnswer)) {
	k := &all[part[0]].Resource.(*resource).keys
	p.reportRenewals(all, part, p.run(ctx, &p.scripts.renew, k, deadline, renewal(all, part)), done)
}

// renewAt sends commands to one server in one flush. Those whose script the server did not know are
// sent once more, whole.
func (p *Protocol) renewAt(all []protocol.Renewal, parts [][]int, deadline time.Time,
	done func(int, protocol.RenewalAnswer)) {
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	requests := make([]wire.Request, len(parts))
	for i, part := range parts {
		requests[i] = wire.Request{Op: p.scripts.renew.Op, Args: p.scripts.renew.ByDigest(renewal(all, part)),
			Key: keyOf(all, part)}
		p.requireReplicas(&requests[i], deadline)
	}
	replies := p.servers.Do(ctx, requests)
	var unknown [][]int
	var whole []wire.Request
	for i, part := range parts {
		if wire.IsUnknownScript(replies[i]) {
			request := requests[i]
			request.Args = p.scripts.renew.Whole(request.Args)
			unknown, whole = append(unknown, part), append(whole, request)
			continue
		}
		p.reportRenewals(all, part, replies[i], done)
	}
	if len(whole) > 0 {
		for i, reply := range p.servers.Do(ctx, whole) {
			p.reportRenewals(all, unknown[i], reply, done)
		}
	}
}

// keyOf is the key by which the command of a part finds its server.
func keyOf(all []protocol.Renewal, part []int) string {
	return all[part[0]].Resource.(*resource).keys.state.(string)
}

// renewal is the command for a part, but for its first two words.
func renewal(all []protocol.Renewal, part []int) []any {
	args := make([]any, 3, 3+6*len(part))
	args[2] = len(part)
	for _, i := range part {
		args = append(args, all[i].Resource.(*resource).keys.state)
	}
	for _, i := range part {
		renewal, r := all[i], all[i].Resource.(*resource)
		ttl := int64(0)
		if renewal.TTL > 0 {
			ttl = wire.Millis(renewal.TTL)
		}
		args = append(args, r.ticket(renewal.Ticket)+wire.Digits16(renewal.Token), r.payload(renewal.Ticket), ttl,
			renewal.Floor, renewal.Ceiling)
	}
	return args
}

func (p *Protocol) reportRenewals(all []protocol.Renewal, part []int, reply wire.Reply,
	done func(int, protocol.RenewalAnswer)) {
	text, _ := reply.Value.(string)
	letters, breakers, ok := readRenewals(text, len(part))
	for at, i := range part {
		r := all[i].Resource.(*resource)
		err := r.failureOf(&p.scripts.renew, reply, r.keys.state)
		switch {
		case err != nil:
			p.servers.Doubt()
			done(i, protocol.RenewalAnswer{Err: err})
		case !ok:
			done(i, protocol.RenewalAnswer{Err: r.at(reply, r.unreadable("renew", reply.Value))})
		case letters[at] == 'R':
			done(i, protocol.RenewalAnswer{Err: r.broken(breakers[at])})
		case letters[at] == 'F':
			done(i, protocol.RenewalAnswer{Err: r.at(reply, r.foreign("renew", ""))})
		case letters[at] == '1' && all[i].TTL > 0 && r.unconfirmed("renew", reply) != nil:
			done(i, protocol.RenewalAnswer{Err: r.at(reply, r.unconfirmed("renew", reply))})
		default:
			done(i, protocol.RenewalAnswer{Held: letters[at] == '1'})
		}
	}
}

// readRenewals splits a reply of renew.lua: a letter for each of so many renewals, and for each "R"
// who broke the hold. It is false if the reply is none.
func readRenewals(text string, renewals int) (letters string, breakers map[int]string, ok bool) {
	if len(text) < renewals {
		return "", nil, false
	}
	letters, rest := text[:renewals], text[renewals:]
	for at := range letters {
		if letters[at] != 'R' {
			continue
		}
		size, tail, found := strings.Cut(rest, ":")
		by, tail, ok := cutText(size, tail)
		if !found || !ok {
			return "", nil, false
		}
		if breakers == nil {
			breakers = make(map[int]string)
		}
		breakers[at], rest = by, tail
	}
	return letters, breakers, rest == ""
}
