package doctor

import "context"

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

// diskTrouble tells of writes to the disk that failed.
func (p *serverCheck) diskTrouble(check string) {
	for _, field := range []string{"aof_last_write_status", "rdb_last_bgsave_status"} {
		if status := p.info[field]; status != "" && status != "ok" {
			p.add(Danger, check, field+" is "+status,
				"the disk is full or broken: the server refuses writes, or soon will, and grants no lock",
				"free the disk; the log of the server has the reason")
		}
	}
}
