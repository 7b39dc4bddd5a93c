package workload

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/proof/harness"
	"github.com/holdfast-go/holdfast/proof/history"
)

// Env is the environment variable in which a worker finds its Plan. A program that starts workers
// by running itself again looks for it first thing, and calls Worker if it is there.
const Env = "HOLDFAST_WORKER"

// A Plan is what a worker needs to know.
type Plan struct {
	Addr       string // of the server
	Dir        string // of the history
	Goroutines int    // in each process
	Names      Names  // of the locks
	Prefix     string // of the keys
	Proc       string // name of this process; different for each life
	Resource   string // address of the Resource
	Seed       uint64
	Slot       int // of the process, the same in each life
}

// TTLs are those that leases of the workload have: short, so that they often run out.
var ttls = []time.Duration{300 * time.Millisecond, 500 * time.Millisecond, time.Second}

// longestTTL is after how long nothing of a crashed worker counts any more.
const longestTTL = time.Second

// longestWait is the longest a worker waits for a lock.
const longestWait = 2 * time.Second

// PlanFromEnv finds the plan of this process. ok is false if it is no worker.
func PlanFromEnv() (plan Plan, ok bool, err error) {
	text, ok := os.LookupEnv(Env)
	if !ok {
		return Plan{}, false, nil
	}
	if err := json.Unmarshal([]byte(text), &plan); err != nil {
		return Plan{}, true, fmt.Errorf("workload: %s: %w", Env, err)
	}
	return plan, true, nil
}

// env returns the plan as an entry of an environment.
func (p Plan) env() (string, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return "", fmt.Errorf("workload: %w", err)
	}
	return Env + "=" + string(text), nil
}

// A dice draws the decisions of one goroutine, from the seed and the names of those it is for.
type dice = harness.Dice

func newDice(seed uint64, parts ...uint64) dice {
	var stream uint64
	for _, part := range parts {
		stream = stream*1_000_003 + part + 1
	}
	return dice{Rand: rand.New(rand.NewPCG(seed, stream))}
}

// Names are what the locks of a run are called, some of each type but groups, which are made of
// mutexes. A name keeps its type.
type Names map[history.Type][]string

// EveryType has names of each type: few, so that all processes meet.
func EveryType() Names {
	return Names{
		history.Mutex:     {"red", "green", "blue"},
		history.ReadWrite: {"book", "page"},
		history.Semaphore: {"seats"},
		history.Election:  {"chair"},
		history.Latch:     {"gate"},
	}
}

// draw chooses what a step is about: a type, and a name of it, or of a group some.
func (n Names) draw(d dice) (history.Type, []string) {
	var typ history.Type
	switch roll := d.IntN(100); {
	case roll < 32:
		typ = history.Mutex
	case roll < 60:
		typ = history.ReadWrite
	case roll < 74:
		typ = history.Semaphore
	case roll < 84:
		names := slices.Clone(n[history.Mutex])
		d.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		return history.Group, names[:1+d.IntN(len(names))]
	case roll < 92:
		typ = history.Election
	default:
		typ = history.Latch
	}
	return typ, []string{n[typ][d.IntN(len(n[typ]))]}
}
