package mutant

import "github.com/holdfast-go/holdfast/proof/history"

// Mutants are the bugs that the workload must catch.
func Mutants() []Mutant {
	return []Mutant{
		{
			Name:  "double grant",
			Rules: []string{history.RuleOverlap},
			Patches: []Patch{{
				File: "internal/native/lua/ask.lua",
				Old:  "  free = shares(string.sub(live[1], 28), payload)\n",
				New:  "  free = true\n",
			}},
		},
		{
			Name:  "release without owner check",
			Rules: []string{history.RuleOverlap},
			Patches: []Patch{{
				File: "internal/native/lua/free.lua",
				Old:  "if not drop(ticket, payload) then\n",
				New:  "if redis.call('ZREMRANGEBYSCORE', key, EXCLUSIVE_FROM, EXCLUSIVE_TO) == 0 and not drop(ticket, payload) then\n",
			}},
		},
		{
			Name:  "trust from an unknown answer",
			Rules: []string{history.RuleOverlap},
			Patches: []Patch{{
				File: "internal/engine/watch.go",
				Old:  "\tcase r.Err != nil:\n\t\th.failure = r.Err\n",
				New:  "\tcase r.Err != nil:\n\t\th.confirm(sent, ttl)\n",
			}},
		},
	}
}
