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
				Old:  "local free = not live[1]\n",
				New:  "local free = true\n",
			}},
		},
		{
			Name:  "release without owner check",
			Rules: []string{history.RuleOverlap},
			Patches: []Patch{{
				File: "internal/native/lua/free.lua",
				Old:  "if dropped ~= 0 and type(dropped) == 'number' then\n",
				New: "if dropped == 0 then\n  dropped = redis.pcall('ZREMRANGEBYSCORE', KEYS[1], '0', '9999999999999')\nend\n" +
					"if dropped ~= 0 and type(dropped) == 'number' then\n",
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
