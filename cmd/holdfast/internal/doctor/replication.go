package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// A replica is one, as its master sees it.
type replica struct {
	state string
	lag   int64 // seconds since it confirmed last
}

// lateReplica is the lag in seconds from which on a replica is called late. A replica that is in
// step confirms every second.
const lateReplica = 3

// replicas reads the lines slave0:ip=...,port=...,state=...,offset=...,lag=... of INFO.
func (i infoText) replicas() map[string]replica {
	found := map[string]replica{}
	for n := range max(0, i.number("connected_slaves")) {
		fields := map[string]string{}
		for field := range strings.SplitSeq(i[fmt.Sprintf("slave%d", n)], ",") {
			name, value, _ := strings.Cut(field, "=")
			fields[name] = value
		}
		if fields["ip"] == "" {
			continue
		}
		lag, _ := strconv.ParseInt(fields["lag"], 10, 64)
		found[fields["ip"]+":"+fields["port"]] = replica{fields["state"], lag}
	}
	return found
}

// replication checks the role of the server, and what a fail-over loses.
func (p *serverCheck) replication(ctx context.Context) {
	const check = "replication"
	p.lags = p.info.replicas()
	switch role := p.info["role"]; {
	case role == "":
		p.add(Unknown, check, "not told: "+p.whyUnknown(), "a replica grants nothing, and a fail-over may lose locks",
			p.howToTell())
	case role != "master":
		p.add(Danger, check, "this is a replica of "+p.info["master_host"]+":"+p.info["master_port"],
			"a replica grants no lock",
			"name the master in the URL, or use redis+sentinel:// or redis+cluster://")
	case len(p.lags) == 0:
		p.checkAlone(check)
	case p.member:
		p.add(Danger, check, countReplicas(len(p.lags))+" this master",
			"a replica that takes over a master of a quorum has forgotten locks, and is not noticed", "let nothing replicate it: REPLICAOF NO ONE at the replicas")
	default:
		p.checkSplitBrain(ctx, check)
	}
}

// countReplicas says how many replicas follow.
func countReplicas(n int) string {
	if n == 1 {
		return "1 replica follows"
	}
	return fmt.Sprintf("%d replicas follow", n)
}

// checkAlone is a master without replicas.
func (p *serverCheck) checkAlone(check string) {
	switch {
	case p.member:
		p.ok(check, "no replicas, as a quorum wants it")
	case p.cluster:
		p.add(Note, check, "no replica", "when this master is gone, nobody serves its slots until it is back", "")
	default:
		p.ok(check, "no replicas: when this server is gone, no lock can be taken until it is back")
	}
}

// checkSplitBrain checks what bounds a split brain, and whether replicas confirm.
func (p *serverCheck) checkSplitBrain(ctx context.Context, check string) {
	least, err := p.config(ctx, "min-replicas-to-write")
	need, _ := strconv.Atoi(least)
	switch {
	case err != nil:
		p.add(Note, check, "min-replicas-to-write is not told: "+errorText(err),
			"a master that is cut off goes on granting", "")
	case need == 0:
		p.add(Note, check, "min-replicas-to-write is 0", "a master that is cut off goes on granting beside the new master",
			"min-replicas-to-write 1")
	case need > len(p.lags):
		p.add(Danger, check, fmt.Sprintf("min-replicas-to-write is %d, and %s", need, countReplicas(len(p.lags))),
			"the server refuses writes, and grants no lock", fmt.Sprintf("start replicas, or min-replicas-to-write %d",
				len(p.lags)))
	default:
		p.ok(check, "min-replicas-to-write is "+least)
	}
	p.confirm(ctx, check)
}

// confirm measures how long a replica takes to confirm a write: what Config.Replicas would cost.
func (p *serverCheck) confirm(ctx context.Context, check string) {
	const hint = "in the programs: Config.Replicas{Count: 1, Timeout: 500 * time.Millisecond}"
	const means = "without Config.Replicas a fail-over forgets the locks that its replica had not received, and second holders get in"
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	conn := p.rdb.Conn()
	defer conn.Close()
	if err := conn.Set(ctx, p.key(), "x", requestTime).Err(); err != nil {
		p.add(Note, check, "whether replicas confirm is not known: "+errorText(err), means, hint)
		return
	}
	defer conn.Del(ctx, p.key())
	began := time.Now()
	confirmed, err := conn.Do(ctx, "WAIT", 1, 1000).Int()
	took := time.Since(began).Round(10 * time.Microsecond)
	switch {
	case err != nil:
		p.add(Note, check, "whether replicas confirm is not known: "+errorText(err), means, hint)
	case confirmed == 0:
		p.unconfirmed = true
		p.add(Danger, check, "no replica confirmed a write within 1s", means, "look at the replicas: INFO replication")
	default:
		p.add(Note, check, fmt.Sprintf("%d of %d replicas confirmed a write after %v", confirmed, len(p.lags), took),
			means, hint)
	}
}

// lag checks each replica, at the end of the examination: a replica that was late then and before
// is late.
func (p *serverCheck) lag(ctx context.Context) {
	const check = "replica lag"
	if len(p.lags) == 0 || p.member {
		return
	}
	info, err := p.askInfo(ctx, "replication")
	if err != nil {
		p.add(Unknown, check, "not told: "+errorText(err), "a fail-over to a late replica forgets locks", "")
		return
	}
	now := info.replicas()
	late := false
	for _, name := range slices.Sorted(maps.Keys(p.lags)) {
		before := p.lags[name]
		after, still := now[name]
		found := ""
		switch {
		case !still:
			found = "replica " + name + " has gone meanwhile"
		case before.state != "online" && after.state != "online":
			found = fmt.Sprintf("replica %s is not in step: %s", name, after.state)
		case after.lag >= lateReplica && (before.lag >= lateReplica || p.unconfirmed):
			found = fmt.Sprintf("replica %s confirmed nothing for %d s", name, after.lag)
		default:
			continue
		}
		late = true
		p.add(Danger, check, found, "a fail-over to it forgets the locks since then, and second holders get in",
			"repair the replica; meanwhile: min-replicas-to-write 1, min-replicas-max-lag 10")
	}
	switch {
	case late || p.unconfirmed: // a finding says so
	case len(p.lags) == 1:
		p.ok(check, "the replica is in step")
	default:
		p.ok(check, fmt.Sprintf("all %d replicas are in step", len(p.lags)))
	}
}

// A lease lives through an outage if its TTL is as many times as long, and so much longer. A test
// compares this with the table in docs/topologies.md.
const (
	ttlFactor = 1.6
	ttlMore   = 2 * time.Second
)

// livesThrough returns how long an outage may be for a lease with a TTL.
func livesThrough(ttl time.Duration) time.Duration {
	return max(0, time.Duration(float64(ttl-ttlMore)/ttlFactor)).Truncate(100 * time.Millisecond)
}

// neededTTL returns the TTL for an outage, in whole seconds.
func neededTTL(outage time.Duration) time.Duration {
	ttl := time.Duration(float64(outage)*ttlFactor) + ttlMore
	return (ttl + time.Second - 1).Truncate(time.Second)
}

// election is how long the servers take to agree on a new master, at most, once the old one is held
// to be down.
const election = 2 * time.Second

// failover compares how long a fail-over takes, by a setting of the servers, with how long a lease
// lives without an answer. Factor is how many times the setting may pass before the master is held
// to be down.
func (p *serverCheck) failover(setting, value string, err error, factor float64) {
	const check = "fail-over"
	millis, bad := strconv.ParseInt(value, 10, 64)
	if err == nil {
		err = bad
	}
	if err != nil {
		p.add(Note, check, setting+" is not told: "+errorText(err),
			"a lease is lost in a fail-over that takes longer than the lease lives through", "")
		return
	}
	takes := time.Duration(float64(millis)*factor)*time.Millisecond + election
	found := fmt.Sprintf("%s is %d: a fail-over takes up to %v, and a lease of %v lives through %v", setting, millis,
		takes, p.ttl, livesThrough(p.ttl))
	if takes <= livesThrough(p.ttl) {
		p.ok(check, found)
		return
	}
	p.add(Note, check, found, "a fail-over loses the leases that are held, and their holders are told; holdfast run ends its command --grace before that",
		fmt.Sprintf("a TTL of %v or more, which --ttl %v checks, or a smaller %s", neededTTL(takes), neededTTL(takes),
			setting))
}

// sentinels asks the first sentinel that answers when it holds the master to be down.
func (p *serverCheck) sentinels(ctx context.Context, master string, sentinels []*redis.Options) {
	var settings map[string]string
	err := errors.New("the URL names no sentinel")
	for _, options := range sentinels {
		settings, err = p.askSentinel(ctx, master, options)
		if err == nil {
			break
		}
	}
	p.failover("down-after-milliseconds", settings["down-after-milliseconds"], err, 1)
}

func (p *serverCheck) askSentinel(ctx context.Context, master string, options *redis.Options) (map[string]string,
	error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	sentinel := redis.NewSentinelClient(options)
	defer sentinel.Close()
	return sentinel.Master(ctx, master).Result()
}
