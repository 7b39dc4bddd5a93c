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

// clusterCheck is the name of what is found of a cluster as a whole.
const clusterCheck = "cluster"

// cluster examines each master of a cluster, and its slots.
func (e *examination) cluster(ctx context.Context, rdb *redis.ClusterClient) error {
	where := "cluster of " + server.Redact(e.target.URL)
	served, err := clusterSlots(ctx, rdb)
	if err != nil {
		return err
	}
	e.checkCoverage(where, served)
	checks, err := e.masterChecks(ctx, rdb)
	if err != nil {
		return err
	}
	away := Finding{Check: clusterCheck, Means: "nobody can take or renew the locks in its slots",
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

// masterChecks returns a check of each master. Its probes have a tag that lies in a slot of it. The
// client says which master that is, as it may reach masters at other addresses than those that they
// announce.
func (e *examination) masterChecks(ctx context.Context, rdb *redis.ClusterClient) ([]*serverCheck, error) {
	var mu sync.Mutex
	var checks []*serverCheck
	tagless := map[*redis.Client]*serverCheck{}
	err := rdb.ForEachMaster(ctx, func(_ context.Context, master *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		p := e.newServerCheck(master.Options().Addr, master)
		p.cluster = true
		checks, tagless[master] = append(checks, p), p
		return nil
	})
	for n := 0; len(tagless) > 0 && n < 100*slots; n++ { // many more than the master of a single slot needs
		tag := strconv.Itoa(n)
		if master, err := rdb.MasterForKey(ctx, tag); err == nil && tagless[master] != nil {
			tagless[master].tag = tag
			delete(tagless, master)
		}
	}
	slices.SortFunc(checks, func(a, b *serverCheck) int { return strings.Compare(a.name, b.name) })
	return checks, err
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
	if gaps := findGaps(served); len(gaps) > 0 {
		e.add(Danger, clusterCheck, where, "nobody serves the slots "+strings.Join(gaps, ", "),
			"the locks of the names in these slots can be neither taken nor renewed; with cluster-require-full-coverage yes, none can",
			"redis-cli --cluster fix HOST:PORT")
		return
	}
	e.add(OK, clusterCheck, where, "all slots are served", "", "")
}

// fullCoverage checks what the other masters do when one is gone.
func (p *serverCheck) fullCoverage(ctx context.Context) {
	switch value, err := p.config(ctx, "cluster-require-full-coverage"); {
	case err != nil:
		p.add(Note, clusterCheck, "cluster-require-full-coverage is not told: "+errorText(err),
			"if it is yes, all slots refuse requests while one has no master", "")
	case value == "no":
		p.ok(clusterCheck, "cluster-require-full-coverage is no")
	default:
		p.add(Note, clusterCheck, "cluster-require-full-coverage is "+value,
			"all slots refuse requests while one has no master: leases at all masters are lost",
			"cluster-require-full-coverage no")
	}
	if p.info["redis_version"] != "" && !p.usesShardedChannels() {
		p.add(Note, clusterCheck, "no sharded channels", "each message goes to every node",
			"Redis or Valkey 7.0 or newer")
	}
}

// databases tells of a cluster with several databases, which Valkey has from 9.0 on.
func (p *serverCheck) databases(ctx context.Context) {
	if n, err := p.config(ctx, "cluster-databases"); err == nil && n != "1" {
		p.add(Note, clusterCheck, "cluster-databases is "+n, "a name in two databases is two locks; the command uses database 0",
			"let all clients of a name use one database")
	}
}
