package doctor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

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
