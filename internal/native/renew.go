package native

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

const renewBatch = 100 // names in one command: long enough to be cheap, short enough not to hold up others

// Renew implements protocol.Protocol. On a single server a command carries many names; on a cluster those of one slot.
func (p *Protocol) Renew(ctx context.Context, renewals []protocol.Renewal, done func(i int, r protocol.Renewed)) {
	deadline := p.deadline(ctx)
	together := p.shape.single(ctx, p.server, deadline)
	groups := make(map[int][]int)
	for i, renewal := range renewals {
		group := -1
		if !together {
			group = renewal.Resource.(*resource).keys.slot
		}
		groups[group] = append(groups[group], i)
	}
	var wg sync.WaitGroup
	for _, group := range groups {
		for len(group) > 0 {
			n := min(len(group), renewBatch)
			part := group[:n]
			group = group[n:]
			wg.Go(func() { p.renew(ctx, renewals, part, deadline, done) })
		}
	}
	wg.Wait()
}

// renew sends one command.
func (p *Protocol) renew(ctx context.Context, all []protocol.Renewal, part []int, deadline time.Time, done func(int, protocol.Renewed)) {
	first := all[part[0]].Resource.(*resource)
	args := make([]any, 3, 3+6*len(part))
	args[2] = len(part)
	for _, i := range part {
		args = append(args, all[i].Resource.(*resource).keys.state)
	}
	for _, i := range part {
		renewal, r := all[i], all[i].Resource.(*resource)
		ttl := int64(0)
		if renewal.TTL > 0 {
			ttl = millis(renewal.TTL)
		}
		args = append(args, r.ticket(renewal.Ticket)+digits16(renewal.Token), r.payload(renewal.Ticket), ttl, renewal.Floor, renewal.Ceiling)
	}
	reply := p.run(ctx, &p.scripts.renew, first.keys.state.(string), deadline, args)
	text, _ := reply.Value.(string)
	for at, i := range part {
		r := all[i].Resource.(*resource)
		err := r.failure("renew", reply)
		switch {
		case err != nil:
			done(i, protocol.Renewed{Err: err})
		case len(text) != len(part):
			done(i, protocol.Renewed{Err: r.unreadable("renew", reply.Value)})
		case text[at] == 'F':
			done(i, protocol.Renewed{Err: r.foreign("renew", "")})
		default:
			done(i, protocol.Renewed{Held: text[at] == '1'})
		}
	}
}
