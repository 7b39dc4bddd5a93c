package doctor

import (
	"context"
	"fmt"
	"strconv"
)

// persistence checks what a restart loses.
//
// Trap 44: a kill -9 without AOF loses every lock.
func (p *serverCheck) persistence(ctx context.Context) {
	const check = "persistence"
	switch {
	case p.info["aof_enabled"] == "":
		p.add(Unknown, check, "not told: "+p.whyUnknown(), "without an append-only file a restart forgets every lock",
			p.howToTell())
	case p.info["loading"] == "1":
		p.add(Danger, check, "the server is loading its data", "it serves nobody before it has finished",
			"wait, and run doctor again")
	case p.info["aof_enabled"] == "1":
		p.appendOnly(ctx, check)
	case p.member:
		p.add(Note, check, "no append-only file",
			"after a restart this master does not count for the longest TTL, at least 5m", "appendonly yes")
	default:
		p.add(Danger, check, "no append-only file"+p.snapshots(ctx),
			"a restart forgets locks, and second holders get in; so does a master that is back before its replica takes over",
			"appendonly yes (at once: CONFIG SET appendonly yes, then CONFIG REWRITE)")
	}
	p.diskTrouble(check)
}

// snapshots says what a server without an append-only file writes.
func (p *serverCheck) snapshots(ctx context.Context) string {
	switch save, err := p.config(ctx, "save"); {
	case err != nil:
		return ""
	case save == "":
		return ", and no snapshots"
	default:
		return ", and snapshots by \"save " + save + "\""
	}
}

// appendOnly checks when the append-only file reaches the disk.
func (p *serverCheck) appendOnly(ctx context.Context, check string) {
	const found = "append-only file"
	switch sync, err := p.config(ctx, "appendfsync"); {
	case err != nil:
		p.add(Note, check, found+"; appendfsync is not told: "+errorText(err),
			"if the machine dies, the locks of the last second or more may be forgotten", "")
	case sync == "always":
		p.ok(check, found+", appendfsync always")
	case sync == "everysec":
		p.add(Note, check, found+", appendfsync everysec",
			"nothing is lost when the process is killed; when the machine dies, a second of locks may be",
			"appendfsync always, if that second matters")
	default:
		p.add(Danger, check, found+", appendfsync "+sync,
			"the system writes when it likes: when the machine dies, every lock may be forgotten", "appendfsync everysec")
	}
}

func (p *serverCheck) diskTrouble(check string) {
	for _, field := range []string{"aof_last_write_status", "rdb_last_bgsave_status"} {
		if status := p.info[field]; status != "" && status != "ok" {
			p.add(Danger, check, field+" is "+status,
				"the disk is full or broken: the server refuses writes, or soon will, and grants no lock",
				"free the disk; the log of the server has the reason")
		}
	}
}

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
			"when the memory is full, the server drops the keys of locks, and a second holder gets in",
			"maxmemory-policy noeviction; or, from Redis 8.12 on, Config.NoEvict in all clients")
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
