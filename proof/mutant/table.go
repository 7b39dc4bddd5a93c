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
				Old:  "local turn = exclusive[1] and enters(ticket, payload)\n",
				New:  "local turn = true\n",
			}},
		},
		{
			Name:  "release without owner check",
			Rules: []string{history.RuleOverlap},
			Patches: []Patch{{
				File: "internal/native/lua/free.lua",
				Old:  "if not token then\n  return 0\nend\n",
				New:  "token = token or '0'\n",
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
