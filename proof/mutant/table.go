package mutant

import (
	"slices"

	"github.com/holdfast-go/holdfast/proof/judge"
)

// Mutants returns the bugs that must be caught: of what runs at the server, and of the client.
func Mutants() []Mutant {
	all := slices.Concat(scriptMutants(), clientMutants(), commandMutants(), quorumMutants(), fenceMutants(),
		exploredMutants())
	return append(all, simulated(all)...)
}

// simulated returns the mutants that the ledger of the simulation must catch as well, one for each
// rule that calm runs can break.
func simulated(all []Mutant) (more []Mutant) {
	rules := map[string]string{
		"double grant":                    judge.Overlap,
		"stuck token":                     judge.Token,
		"min hold forgotten by a release": judge.MinHold,
		"watchdog outlives its release":   judge.Release,
		"latch opens in silence":          judge.Latch,
	}
	for _, m := range all {
		if rule := rules[m.Name]; rule != "" {
			more = append(more, Mutant{m.Name + ", simulated", simulation(rule), m.Patches})
		}
	}
	return more
}

// patched returns a mutant of one patch.
func patched(name string, caught Check, file, old, by string) Mutant {
	return Mutant{name, caught, []Patch{{file, old, by}}}
}

// clock returns a test on an embedded server and a fake clock; trap is one on a real server.
func clock(name string) Check { return Check{Module: "proof", Package: "./clock", Test: name} }
func trap(name string) Check  { return Check{Module: "proof", Package: "./traps", Test: name} }
func secured(name string) Check {
	return Check{Module: "proof", Package: "./security", Test: name}
}

// suite returns a case of the conformance suite, on an embedded server; realSuite is one on a real
// server.
func suite(name string) Check { return clock("TestConformance/miniredis/" + name) }
func realSuite(name string) Check {
	return Check{Module: "redisstore", Package: ".", Test: "TestConformance/redis-server/" + name}
}

// root returns a test of the engine on the protocol in memory.
func root(name string) Check { return Check{Module: ".", Package: ".", Test: name} }

func native(name string) Check   { return Check{Module: ".", Package: "./internal/native", Test: name} }
func classOf(name string) Check  { return Check{Module: ".", Package: "./internal/classes", Test: name} }
func wire(name string) Check     { return Check{Module: ".", Package: "./internal/wire", Test: name} }
func inEngine(name string) Check { return Check{Module: ".", Package: "./internal/engine", Test: name} }
func inHistory(name string) Check {
	return Check{Module: ".", Package: "./internal/history", Test: name}
}
func facts(name string) Check { return Check{Module: ".", Package: "./lockinfo", Test: name} }
func page(name string) Check  { return Check{Module: ".", Package: "./dashboard", Test: name} }

// command returns a test of the command. Of its scripts, TestScripts/acquire is one.
func command(name string) Check {
	return Check{Module: "cmd/holdfast", Package: ".", Test: name}
}

// model compares the scripts with the protocol in memory, by random requests.
func model(kind string) Check {
	return Check{Module: "proof", Package: "./model", Test: "TestScriptsAreAsTheModel/" + kind}
}

// kept returns a test of kept places on a real server.
func kept(name string) Check {
	return Check{Module: "proof", Package: "./model", Test: "TestKeptPlace" + name}
}

// fault returns one fault under load, on a real server.
func fault(name string) Check {
	return Check{Module: "proof", Package: "./faults", Test: "TestFaults/single/" + name}
}

// torture returns a rule of the history of processes that are killed, stopped and cut off. A run
// shows some bugs and not others, by its timing.
func torture(rule string) Check {
	return Check{Module: "proof", Package: ".", Test: "TestTorture", Says: "violation " + rule + ": "}
}

// simulation returns a rule of the ledger that calm runs of the simulation keep.
func simulation(rule string) Check {
	return Check{Module: "proof", Package: "./simulate", Test: "TestUndisturbed", Says: "violation " + rule + " at "}
}

// always returns the mutants that `make check` tries: the checks of the history are worth
// something.
func always() []Mutant {
	var some []Mutant
	for _, m := range Mutants() {
		if m.Caught == torture(judge.Overlap) {
			some = append(some, m)
		}
	}
	return some
}
