package shard

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
)

// TestMain fails when a goroutine is left behind (trap 33).
func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

type smallSearch struct {
	*small
	seen map[smallState]arrival
	calm map[smallState]bool // from here, all comes to its share
	most int8                // moves of one shard since the last event
}

// An arrival is how a state was reached first.
type arrival struct {
	from smallState
	move smallMove
}

// each yields the moves of some kinds.
func (w *small) each(from, to int, yield func(m smallMove) bool) {
	for kind := from; kind < to; kind++ {
		choices := 1
		switch {
		case kind <= resume || kind == resign:
			choices = w.shards
		case kind == come:
			choices = len(w.weights)
		}
		for who := range mostProcesses {
			for i := range choices {
				if !yield(smallMove{kind, int8(who), int8(i)}) {
					return
				}
			}
		}
	}
}

// next returns what a state becomes by the first move from inside that leads to none of the path,
// and whether there is any move. The move is the last one of done then.
func (w *small) next(s smallState, path map[smallState]bool, done *[]smallMove) (
	next smallState, moves bool, err error) {
	next = s
	w.each(0, come, func(m smallMove) bool {
		var t smallState
		t, err = w.apply(s, m)
		moves = moves || t != s
		if t != s && !path[t] || err != nil {
			next = t
			*done = append(*done, m)
			return false
		}
		return true
	})
	return next, moves, err
}

// isCalm reports whether nothing happens any more.
func (w *small) isCalm(s smallState) bool {
	_, moves, _ := w.next(s, nil, &[]smallMove{})
	return !moves
}

// calmEnd returns what is wrong if nothing more happens from outside, and what the processes did
// until then. They may do it in any order that is fair; this is one that comes to an end.
func (x *smallSearch) calmEnd(s smallState) (done []smallMove, err error) {
	for path := map[smallState]bool{}; !x.calm[s]; {
		path[s] = true
		t, moves, err := x.next(s, path, &done)
		if err == nil && t == s {
			if x.calm[s] = true; moves {
				err = errors.New("stuck: the processes plan for ever")
			} else {
				err = x.fault(s)
			}
		}
		if err != nil {
			return done, err
		}
		if s = t; x.calm[s] {
			for known := range path {
				x.calm[known] = true
			}
		}
	}
	return nil, nil
}

// explore visits all states of a world, and returns a shortest story that breaks a rule.
func (x *smallSearch) explore() (story []string) {
	var start smallState
	x.seen, x.calm = map[smallState]arrival{start: {}}, map[smallState]bool{}
	level := []smallState{start}
	for depth := 0; len(level) > 0 && (x.depth == 0 || depth < x.depth); depth++ {
		var next []smallState
		for _, s := range level {
			x.each(0, kinds, func(m smallMove) bool {
				t, err := x.apply(s, m)
				if _, known := x.seen[t]; known && err == nil {
					return true
				}
				x.seen[t] = arrival{s, m}
				next = append(next, t)
				var after []smallMove
				if err == nil {
					after, err = x.judge(t)
				}
				if err != nil {
					story = append(x.tell(s, m, after), err.Error())
				}
				return err == nil
			})
			if story != nil {
				return story
			}
		}
		level = next
	}
	return nil
}

// judge returns which rule a state breaks, and what the processes did until then.
func (x *smallSearch) judge(s smallState) (after []smallMove, err error) {
	most := slices.Max(s.moved[:])
	if x.most = max(x.most, most); most > x.bound {
		return nil, fmt.Errorf("churn: a shard moved %d times: %v", most, s.moved)
	}
	return x.calmEnd(s)
}

func (x *smallSearch) tell(s smallState, m smallMove, after []smallMove) (story []string) {
	moves := slices.Clone(after)
	slices.Reverse(moves)
	for moves = append(moves, m); s != (smallState{}); s = x.seen[s].from {
		moves = append(moves, x.seen[s].move)
	}
	slices.Reverse(moves)
	for _, m := range moves {
		story = append(story, m.String())
	}
	return story
}

// smallWorlds returns the worlds that are searched: the small ones in a second, the others in
// minutes.
func smallWorlds(large bool) []small {
	world := func(name string, processes, shards int, change func(w *small)) small {
		w := small{name: name, processes: processes, shards: shards, weights: []int8{1}, events: 3, bound: 2}
		if processes > 2 {
			w.bound = 4
		}
		change(&w)
		return w
	}
	var (
		plain    = func(*small) {}
		weights  = func(w *small) { w.weights = []int8{1, 2} }
		restarts = func(w *small) { w.restart, w.events, w.bound = true, int8(3*w.processes), 2 }
		returns  = func(w *small) { w.returns = true }
	)
	if !large {
		return []small{
			world("two", 2, 3, plain),
			world("three come", 3, 2, func(w *small) { w.stays, w.depth = true, 14 }),
			world("weights", 2, 3, weights),
			world("returns nil", 2, 2, returns),
			world("restart of all", 3, 3, restarts),
		}
	}
	more := func(change func(w *small)) func(w *small) { return func(w *small) { change(w); w.events++ } }
	return []small{
		world("two, four events", 2, 4, more(plain)),
		world("three", 3, 3, plain),
		world("returns nil", 2, 3, more(returns)),
		world("restart of all", 3, 4, restarts),
	}
}

// No rule is broken in any state of any world.
func TestSmallWorlds(t *testing.T) {
	for _, w := range smallWorlds(os.Getenv("HOLDFAST_PROOF") == "1") {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			x := smallSearch{small: &w}
			story := x.explore()
			t.Logf("%d states, a shard moved %d times at most after an event", len(x.seen), x.most)
			if story != nil {
				t.Error(strings.Join(story, "\n"))
			}
		})
	}
}
