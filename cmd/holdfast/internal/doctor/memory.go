package doctor

import (
	"context"
	"fmt"
	"strconv"
)

// eviction checks whether the server may drop keys of locks.
//
// Trap 42: volatile-lru, the default of a large service, drops them.
func (p *serverCheck) eviction(ctx context.Context) {
	const check = "eviction"
	policy, limit := p.info["maxmemory_policy"], p.info["maxmemory"]
	var err error
	if policy == "" {
		if policy, err = p.config(ctx, "maxmemory-policy"); err == nil {
			limit, err = p.config(ctx, "maxmemory")
		}
	}
	switch {
	case err != nil:
		p.add(Unknown, check, "not told: "+p.whyUnknown(), "a server that is full and drops keys lets a second holder in",
			p.howToTell())
	case policy == "noeviction":
		p.ok(check, "maxmemory-policy is noeviction")
	case limit == "0":
		p.add(Note, check, "maxmemory-policy is "+policy+", and maxmemory is 0: nothing is dropped yet",
			"once maxmemory is set, the server drops locks", "maxmemory-policy noeviction")
	default:
		p.add(Danger, check, "maxmemory-policy is "+policy+", and maxmemory is "+sizeOf(limit),
			"when the memory is full, the server drops the keys of locks, and a second holder gets in", "maxmemory-policy noeviction")
	}
}

// fullAt is the share of the memory from which on a server is called full.
const fullAt = 0.9

// memory checks whether the server is about to refuse writes.
func (p *serverCheck) memory() {
	const check = "memory"
	limit, used := p.info.number("maxmemory"), p.info.number("used_memory")
	switch {
	case limit < 0 || used < 0:
		p.add(Unknown, check, "not told: "+p.whyUnknown(), "a server that is full refuses to grant locks",
			"watch the memory by the metrics of the service")
	case limit == 0:
		p.ok(check, "no limit (maxmemory 0)")
	case float64(used) >= fullAt*float64(limit):
		p.add(Danger, check, fmt.Sprintf("%s of %s are in use", size(used), size(limit)),
			"a full server grants no lock: requests fail with OOM", "maxmemory "+strconv.FormatInt(2*limit, 10))
	default:
		p.ok(check, fmt.Sprintf("%s of %s are in use", size(used), size(limit)))
	}
}

// sizeOf is size of a number in digits.
func sizeOf(digits string) string {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return digits
	}
	return size(n)
}

// size is a number of bytes for people.
func size(bytes int64) string {
	value, unit := float64(bytes), "bytes"
	for _, larger := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if value < 1024 {
			break
		}
		value, unit = value/1024, larger
	}
	return strconv.FormatFloat(value, 'g', 3, 64) + " " + unit
}
