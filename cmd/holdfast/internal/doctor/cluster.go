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
	e.checkCoverage(where, served)
	var mu sync.Mutex
	var checks []*serverCheck
	_ = rdb.ForEachMaster(ctx, func(_ context.Context, master *redis.Client) error { // it never fails
		p := e.newServerCheck(master.Options().Addr, master)
		p.cluster = true
		mu.Lock()
		checks = append(checks, p)
		mu.Unlock()
		return nil
	})
	slices.SortFunc(checks, func(a, b *serverCheck) int { return strings.Compare(a.name, b.name) })
	checks = slices.DeleteFunc(checks, func(p *serverCheck) bool { return !p.chooseTag(ctx, rdb, served) })
	away := Finding{Check: "cluster", Means: "nobody can take or renew the locks in its slots",
		Change: "start it, or let a replica take over"}
	present, err := examineEach(ctx, checks, away, func(p *serverCheck) {
		p.fullCoverage(ctx)
		p.databases(ctx)
		timeout, err := p.config(ctx, "cluster-node-timeout")
		p.failover("cluster-node-timeout", timeout, err, 1.5) // a node may be asked half of it later
	})
	if err != nil {
		return err
	}
	if len(present) > 0 { // one lock is enough: it costs the same at each
		present[0].locks(ctx, rdb)
	}
	forEachServer(present, func(p *serverCheck) { p.compareWithStart(ctx) })
	for _, p := range checks {
		e.findings = append(e.findings, p.findings...)
	}
	return nil
}

// clusterSlots asks the cluster who serves what, in the order of slots.
func clusterSlots(ctx context.Context, rdb *redis.ClusterClient) ([]redis.ClusterSlot, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*requestTime)
	defer cancel()
	served, err := rdb.ClusterSlots(ctx).Result() //nolint:staticcheck // its successor is newer than Redis 6.2
	served = slices.DeleteFunc(served, func(s redis.ClusterSlot) bool { return len(s.Nodes) == 0 })
	slices.SortFunc(served, func(a, b redis.ClusterSlot) int { return a.Start - b.Start })
	return served, err
}

// findGaps returns the ranges of slots that nobody serves.
func findGaps(served []redis.ClusterSlot) (gaps []string) {
	next := 0
	gap := func(to int) {
		if next == to {
			gaps = append(gaps, strconv.Itoa(to))
		} else if next < to {
			gaps = append(gaps, fmt.Sprintf("%d-%d", next, to))
		}
	}
	for _, r := range served {
		gap(r.Start - 1)
		next = max(next, r.End+1)
	}
	gap(slots - 1)
	return gaps
}

// checkCoverage checks that every slot has a master.
func (e *examination) checkCoverage(where string, served []redis.ClusterSlot) {
	const check = "cluster"
	if gaps := findGaps(served); len(gaps) > 0 {
		e.add(Danger, check, where, "nobody serves the slots "+strings.Join(gaps, ", "),
			"the locks of the names in these slots can be neither taken nor renewed; with cluster-require-full-coverage yes, none can",
			"redis-cli --cluster fix HOST:PORT")
		return
	}
	e.add(OK, check, where, "all slots are served", "", "")
}

// chooseTag chooses a tag of the probes that lies in a slot of this master. It returns false for a
// master without slots.
func (p *serverCheck) chooseTag(ctx context.Context, rdb *redis.ClusterClient, served []redis.ClusterSlot) bool {
	if !slices.ContainsFunc(served, func(s redis.ClusterSlot) bool { return s.Nodes[0].Addr == p.name }) {
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
func (p *serverCheck) fullCoverage(ctx context.Context) {
	const check = "cluster"
	switch value, err := p.config(ctx, "cluster-require-full-coverage"); {
	case err != nil:
		p.add(Note, check, "cluster-require-full-coverage is not told: "+errorText(err),
			"if it is yes, all slots refuse requests while one has no master", "")
	case value == "no":
		p.ok(check, "cluster-require-full-coverage is no")
	default:
		p.add(Note, check, "cluster-require-full-coverage is "+value,
			"all slots refuse requests while one has no master: leases at all masters are lost",
			"cluster-require-full-coverage no")
	}
	if p.info["redis_version"] != "" && !p.usesShardedChannels() {
		p.add(Note, check, "no sharded channels", "each message goes to every node", "Redis or Valkey 7.0 or newer")
	}
}

// databases tells of a cluster with several databases, which Valkey has from 9.0 on.
func (p *serverCheck) databases(ctx context.Context) {
	if n, err := p.config(ctx, "cluster-databases"); err == nil && n != "1" {
		p.add(Note, "cluster", "cluster-databases is "+n, "a name in two databases is two locks; the command uses database 0",
			"let all clients of a name use one database")
	}
}
