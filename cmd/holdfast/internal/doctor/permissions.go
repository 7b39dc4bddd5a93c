package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A neededLevel says what is refused without a permission. SECURITY.md has the operations one by
// one.
type neededLevel int

const (
	forWaking neededLevel = iota // nothing is refused: waiters ask instead
	forLocks                     // locks, or some of their kinds
	forPeople                    // Client.List, Inspect, Break and Evict, and nothing else
)

// A permission is one that a user of the server needs.
type permission struct {
	command string // as in ACL rules
	need    neededLevel
	cluster bool // needed on a cluster alone

	// form is the command as it is tried: it has no effect, or none that lasts. {key} and {channel}
	// are those of the probes. Empty: the command is not tried by itself.
	form string

	// dry is a complete form for ACL DRYRUN, which carries nothing out, of a command without
	// a form.
	dry string
}

// permissions are those of the smallest user, as SECURITY.md has them; a test compares the two.
var permissions = []permission{
	{command: "eval", need: forLocks, form: "EVAL|return 1|1|{key}"},
	{command: "evalsha", need: forLocks, form: "EVALSHA|0000000000000000000000000000000000000000|1|{key}"},
	{command: "time", need: forLocks, form: "TIME"},
	{command: "get", need: forLocks, form: "GET|{key}"},
	{command: "set", need: forLocks, form: "SET|{key}|x|XX|PX|1000"},
	{command: "getset", need: forLocks, dry: "GETSET|{key}|x"},
	{command: "del", need: forLocks, form: "DEL|{key}"},
	{command: "exists", need: forLocks, form: "EXISTS|{key}"},
	{command: "pttl", need: forLocks, form: "PTTL|{key}"},
	{command: "pexpire", need: forLocks, form: "PEXPIRE|{key}|1"},
	{command: "publish", need: forWaking, form: "PUBLISH|{channel}|x"},
	{command: "pubsub|numsub", need: forWaking, form: "PUBSUB|NUMSUB|{channel}"},
	{command: "zadd", need: forLocks, form: "ZADD|{key}|XX|1|x"},
	{command: "zcount", need: forLocks, form: "ZCOUNT|{key}|0|1"},
	{command: "zrange", need: forLocks, form: "ZRANGE|{key}|0|1"},
	{command: "zrangebyscore", need: forLocks, form: "ZRANGEBYSCORE|{key}|0|1"},
	{command: "zrem", need: forLocks, form: "ZREM|{key}|x"},
	{command: "zremrangebyscore", need: forLocks, form: "ZREMRANGEBYSCORE|{key}|1|1"},
	{command: "zrevrank", need: forLocks, form: "ZREVRANK|{key}|x"},
	{command: "zscore", need: forLocks, form: "ZSCORE|{key}|x"},
	{command: "hset", need: forLocks, dry: "HSET|{key}|x|x"},
	{command: "hgetall", need: forLocks, form: "HGETALL|{key}"},
	{command: "hdel", need: forWaking, form: "HDEL|{key}|x"},
	{command: "subscribe", need: forWaking, dry: "SUBSCRIBE|{channel}"},
	{command: "unsubscribe", need: forWaking, dry: "UNSUBSCRIBE|{channel}"},
	{command: "info", need: forWaking, form: "INFO|server"},
	{command: "ssubscribe", need: forWaking, cluster: true, dry: "SSUBSCRIBE|{channel}"},
	{command: "sunsubscribe", need: forWaking, cluster: true, dry: "SUNSUBSCRIBE|{channel}"},
	{command: "spublish", need: forWaking, cluster: true, form: "SPUBLISH|{channel}|x"},
	{command: "pubsub|shardnumsub", need: forWaking, cluster: true, form: "PUBSUB|SHARDNUMSUB|{channel}"},
	{command: "cluster|slots", need: forLocks, cluster: true, form: "CLUSTER|SLOTS"},
	{command: "scan", need: forPeople, form: "SCAN|0|MATCH|{key}|COUNT|1"},
}

// inScript are commands that leave a key behind. A script tries each, and removes the key: another
// request cannot come between. Its answer is "ok" or the error.
var inScript = map[string]string{
	"getset": "local r=redis.pcall('GETSET',KEYS[1],'x')" + restOfTrial,
	"hset":   "local r=redis.pcall('HSET',KEYS[1],'x','x')" + restOfTrial,
}

const restOfTrial = " redis.call('DEL',KEYS[1]) if type(r)=='table' and r.err then return r.err end return 'ok'"

func (p *serverCheck) commandWords(form string) []any {
	var words []any
	for word := range strings.SplitSeq(form, "|") {
		word = strings.NewReplacer("{key}", p.key(), "{channel}", p.channel()).Replace(word)
		words = append(words, word)
	}
	return words
}

// usesShardedChannels reports whether the clients use sharded channels here.
func (p *serverCheck) usesShardedChannels() bool {
	r, ok := releaseOf(p.info["redis_version"])
	return p.cluster && ok && !r.isBefore(release{7, 0, 0})
}

// permissions checks each command of the smallest user.
func (p *serverCheck) permissions(ctx context.Context) {
	user, refusals, unsure := p.dryRun(ctx)
	how := fmt.Sprintf("all %d commands, by ACL DRYRUN", len(p.neededPermissions()))
	if refusals == nil {
		refusals, unsure = p.tryAll(ctx)
		how = "all commands that can be tried alone, by trying them; the check of messages subscribes"
	}
	p.denied = refusals
	p.judge(user, refusals)
	if len(refusals) == 0 && len(unsure) == 0 {
		p.ok("permissions", how)
	}
	if len(unsure) > 0 {
		p.add(Unknown, "permissions", "not tried: "+strings.Join(unsure, ", "),
			"an operation that needs one of them may be refused",
			"let the user ask: ACL SETUSER "+user+" +acl|dryrun +acl|whoami")
	}
}

// neededPermissions are the permissions that count here.
func (p *serverCheck) neededPermissions() (wanted []permission) {
	for _, w := range permissions {
		if !w.cluster || p.cluster && (p.usesShardedChannels() || w.command == "cluster|slots") {
			wanted = append(wanted, w)
		}
	}
	return wanted
}

// dryRun asks the server whether the user may send each command. No refusals: it does not say.
func (p *serverCheck) dryRun(ctx context.Context) (user string, refusals map[string]string, unsure []string) {
	answer, err := p.do(ctx, "ACL", "WHOAMI")
	user, _ = answer.(string)
	if err != nil || user == "" {
		return "USER", nil, nil
	}
	refusals = map[string]string{}
	for _, w := range p.neededPermissions() {
		answer, err := p.do(ctx, append([]any{"ACL", "DRYRUN", user}, p.commandWords(cmp.Or(w.form, w.dry))...)...)
		text, _ := answer.(string)
		switch {
		case err != nil && len(refusals) == 0 && len(unsure) == 0:
			return user, nil, nil // it knows no DRYRUN, or does not let us
		case err != nil:
			unsure = append(unsure, w.command)
		case text != "OK":
			refusals[w.command] = text
		}
	}
	return user, refusals, unsure
}

// tryAll sends each command in its harmless form.
func (p *serverCheck) tryAll(ctx context.Context) (refusals map[string]string, unsure []string) {
	refusals = map[string]string{}
	for _, w := range p.neededPermissions() {
		if w.form == "" {
			continue
		}
		if _, err := p.do(ctx, p.commandWords(w.form)...); err != nil && !errors.Is(err, redis.Nil) {
			if !isAnswer(err) {
				unsure = append(unsure, w.command)
			} else if isDenial(err.Error()) {
				refusals[w.command] = err.Error()
			}
		}
	}
	for _, command := range slices.Sorted(maps.Keys(inScript)) {
		if refusals["eval"] != "" || refusals["del"] != "" {
			unsure = append(unsure, command)
			continue
		}
		answer, err := p.do(ctx, "EVAL", inScript[command], 1, p.key())
		text, _ := answer.(string)
		if err != nil {
			text = err.Error()
		}
		switch {
		case isDenial(text):
			refusals[command] = text
		case err != nil:
			unsure = append(unsure, command)
		}
	}
	return refusals, unsure
}

// isDenial reports whether an error line of a server refuses the command. Any other error, such as
// that of a missing key, comes after the permission was found. A script's error has another word in
// front, or none.
func isDenial(line string) bool {
	lower := strings.ToLower(line)
	for _, sign := range []string{"noperm", "unknown command", "unknown subcommand", "can't run this command",
		"acl failure", "no permissions", "is not allowed"} {
		if strings.Contains(lower, sign) {
			return true
		}
	}
	return false
}

// judge makes a finding of each need that has refusals.
func (p *serverCheck) judge(user string, refusals map[string]string) {
	const check = "permissions"
	needs := map[neededLevel]struct {
		level Level
		means string
	}{
		forWaking: {Note, "nothing is refused, but waiters learn of a free lock by asking, up to 5 s later, and the version may be unknown"},
		forLocks:  {Danger, "operations are refused; a release that is refused leaves the lock until its TTL is over"},
		forPeople: {Note, "holdfast ls and Client.List are refused, and nothing else; SCAN shows the names of all keys, so it is for operators alone"},
	}
	for need := forWaking; need <= forPeople; need++ {
		var missing, rules []string
		reason, keys, channels, lacks := "", false, false, false
		for _, w := range p.neededPermissions() {
			line, ok := refusals[w.command]
			if !ok || w.need != need {
				continue
			}
			missing = append(missing, w.command)
			reason = line
			switch about := strings.ToLower(line); {
			case strings.Contains(about, "unknown command"):
				lacks = true
			case strings.Contains(about, "channel"):
				channels = true
			case strings.Contains(about, "key"):
				keys = true
			default:
				rules = append(rules, "+"+w.command)
			}
		}
		if len(missing) == 0 {
			continue
		}
		if keys {
			rules = append(rules, "~"+p.real+":*")
		}
		if channels {
			rules = append(rules, "&"+p.real+":*")
		}
		var change []string
		if len(rules) > 0 {
			change = append(change, "ACL SETUSER "+user+" "+strings.Join(rules, " "))
		}
		if lacks {
			change = append(change, "take a server that has all commands under their names")
		}
		p.add(needs[need].level, check, fmt.Sprintf("refused: %s (the last: %s)", strings.Join(missing, ", "), reason),
			needs[need].means, strings.Join(change, "; "))
	}
}

// checkCommands reports whether the user may send all the commands, as far as is known.
func (p *serverCheck) checkCommands(commands ...string) error {
	if i := slices.IndexFunc(commands, func(command string) bool { return p.denied[command] != "" }); i >= 0 {
		return errors.New("no permission for " + commands[i])
	}
	return nil
}
