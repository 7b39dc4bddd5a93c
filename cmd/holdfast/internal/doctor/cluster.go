package doctor

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
)

// slots is how many slots a cluster has.
const slots = 16384

// cluster examines each master of a cluster, and its slots.
func (e *examination) cluster(ctx context.Context, rdb *redis.ClusterClient) error {
	where := "cluster of " + server.Redact(e.target.URL)
	served, err := clusterSlots(ctx, rdb)
	if err != nil {
		return err
	}
	e.coverage(where, served)
	var mu sync.Mutex
	var patients []*patient
	_ = rdb.ForEachMaster(ctx, func(_ context.Context, master *redis.Client) error { // it never fails
		p := e.patient(master.Options().Addr, master)
		p.cluster = true
		mu.Lock()
		patients = append(patients, p)
		mu.Unlock()
		return nil
	})
	slices.SortFunc(patients, func(a, b *patient) int { return strings.Compare(a.name, b.name) })
	patients = slices.DeleteFunc(patients, func(p *patient) bool { return !p.place(ctx, rdb, served) })
	away := make([]error, len(patients))
	each(patients, func(p *patient) {
		err := p.greet(ctx)
		if err == nil {
			p.examine(ctx)
			p.fullCoverage(ctx)
			timeout, err := p.config(ctx, "cluster-node-timeout")
			p.failover("cluster-node-timeout", timeout, err, 1.5) // a node may be asked half of it later
		}
		away[slices.Index(patients, p)] = err
	})
	var present []*patient
	for i, p := range patients {
		if away[i] == nil {
			present = append(present, p)
			continue
		}
		p.add(Danger, "cluster", "no answer: "+why(away[i]), "nobody can take or renew the locks in its slots", "start it, or let a replica take over")
	}
	if len(present) == 0 && len(patients) > 0 {
		return away[0]
	}
	if len(present) > 0 { // one lock is enough: it costs the same at each
		present[0].locks(ctx, rdb)
	}
	each(present, func(p *patient) { p.discharge(ctx) })
	for _, p := range patients {
		e.findings = append(e.findings, p.findings...)
	}
	return nil
}

// A slotRange is served by one master.
type slotRange struct {
	from, to int
	master   string
}

// clusterSlots asks the cluster who serves what, in the order of slots.
func clusterSlots(ctx context.Context, rdb *redis.ClusterClient) ([]slotRange, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*requestTime)
	defer cancel()
	answer, err := rdb.ClusterSlots(ctx).Result() //nolint:staticcheck // its successor is newer than Redis 6.2
	if err != nil {
		return nil, err
	}
	var served []slotRange
	for _, one := range answer {
		if len(one.Nodes) > 0 {
			served = append(served, slotRange{one.Start, one.End, one.Nodes[0].Addr})
		}
	}
	slices.SortFunc(served, func(a, b slotRange) int { return a.from - b.from })
	return served, nil
}

// missing returns the ranges of slots that nobody serves.
func missing(served []slotRange) (gaps []string) {
	next := 0
	gap := func(to int) {
		if next == to {
			gaps = append(gaps, strconv.Itoa(to))
		} else if next < to {
			gaps = append(gaps, fmt.Sprintf("%d-%d", next, to))
		}
	}
	for _, r := range served {
		gap(r.from - 1)
		next = max(next, r.to+1)
	}
	gap(slots - 1)
	return gaps
}

// coverage checks that every slot has a master.
func (e *examination) coverage(where string, served []slotRange) {
	const check = "cluster"
	finding := Finding{Level: OK, Check: check, Server: where, Found: "all slots are served"}
	if gaps := missing(served); len(gaps) > 0 {
		finding = Finding{Danger, check, where, "nobody serves the slots " + strings.Join(gaps, ", "),
			"the locks of the names in these slots can be neither taken nor renewed; with cluster-require-full-coverage yes, none can",
			"redis-cli --cluster fix HOST:PORT"}
	}
	e.findings = append(e.findings, finding)
}

// place chooses a tag of the probes that lies in a slot of this master. It returns false for a
// master without slots.
func (p *patient) place(ctx context.Context, rdb *redis.ClusterClient, served []slotRange) bool {
	if !slices.ContainsFunc(served, func(r slotRange) bool { return r.master == p.name }) {
		return false
	}
	for n := range 100 * slots { // many more than the master of a single slot needs
		tag := strconv.Itoa(n)
		if master, err := rdb.MasterForKey(ctx, tag); err == nil && master.Options().Addr == p.name {
			p.tag = tag
			return true
		}
	}
	return false
}

// fullCoverage checks what the other masters do when one is gone.
func (p *patient) fullCoverage(ctx context.Context) {
	const check = "cluster"
	switch value, err := p.config(ctx, "cluster-require-full-coverage"); {
	case err != nil:
		p.add(Note, check, "cluster-require-full-coverage is not told: "+why(err), "if it is yes, all slots refuse requests while one has no master", "")
	case value == "no":
		p.ok(check, "cluster-require-full-coverage is no")
	default:
		p.add(Note, check, "cluster-require-full-coverage is "+value, "all slots refuse requests while one has no master: leases at all masters are lost",
			"cluster-require-full-coverage no")
	}
	if p.info["redis_version"] != "" && !p.sharded() {
		p.add(Note, check, "no sharded channels", "each message goes to every node", "Redis or Valkey 7.0 or newer")
	}
}
