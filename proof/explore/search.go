package explore

import (
	"fmt"
	"slices"
	"strings"
)

// A node is how a state was reached first.
type node struct {
	from uint32
	move move
}

// A Result is what a search has found.
type Result struct {
	World  string
	States int
	Moves  int  // how many were tried
	Depth  int  // of the last new state
	Whole  bool // there is no other state
	Broken error
	Story  Story // the shortest one that breaks a rule
}

func (r *Result) String() string {
	all := "all"
	if !r.Whole {
		all = "the first"
	}
	return fmt.Sprintf("%s: %s %d states, %d moves, %d deep", r.World, all, r.States, r.Moves, r.Depth)
}

// A Story is what happened, move by move.
type Story struct {
	World    *World
	Lines    []string
	Requests []Request // in the order in which they reached the server
}

func (s *Story) String() string { return strings.Join(s.Lines, "\n") }

// Explore visits the states of a world, those first that are reached by fewer moves.
func (w *World) Explore() *Result {
	x := &search{World: w, seen: map[key]struct{}{}, calm: map[key]struct{}{}}
	out := &Result{World: w.Name}
	root := x.start()
	x.seen[x.key(root)] = struct{}{}
	x.nodes = append(x.nodes, node{})
	var can []move
	for level := []*state{root}; len(level) > 0 && (w.Depth == 0 || out.Depth < w.Depth); out.Depth++ {
		var next []*state
		for i, s := range level {
			level[i] = nil
			can = x.moves(can[:0], s)
			for _, m := range can {
				out.Moves++
				t, _, err := x.apply(s, m)
				if err == nil && !x.visit(t) {
					continue
				}
				t.node = uint32(len(x.nodes))
				x.nodes = append(x.nodes, node{s.node, m})
				if err == nil {
					err = x.calmEnd(t)
				}
				if err != nil {
					out.Broken, out.Story, out.States = err, x.story(t.node), len(x.seen)
					return out
				}
				next = append(next, t)
			}
		}
		out.Whole = len(next) == 0
		level = next
	}
	out.States = len(x.seen)
	return out
}

// visit reports whether a state is new.
func (x *search) visit(t *state) bool {
	at := x.key(t)
	if _, seen := x.seen[at]; seen {
		return false
	}
	x.seen[at] = struct{}{}
	return true
}

// story tells how a state was reached.
func (x *search) story(at uint32) Story {
	var all []move
	for ; at != 0; at = x.nodes[at].from {
		all = append(all, x.nodes[at].move)
	}
	slices.Reverse(all)
	out := Story{World: x.World}
	s := x.start()
	for _, m := range all {
		t, r, err := x.apply(s, m)
		line := fmt.Sprintf("tick %d: %s", s.now-first, x.describe(s, m))
		if r != nil {
			out.Requests = append(out.Requests, *r)
			line += fmt.Sprintf(": %s: %s", r, answerTexts[r.answer])
		}
		out.Lines = append(out.Lines, line)
		if err != nil {
			out.Lines = append(out.Lines, err.Error())
		}
		s = t
	}
	return out
}

var moveTexts = [...]string{"a tick passes", "begins an attempt", "asks again", "asks for all", "gives up", "renews",
	"releases", "gives back", "yields", "downgrades", "waits at its place", "ends its wait", "dies at its place",
	"detaches", "crashes", "hears that it holds", "reaches the server", "is answered", "sent what comes late",
	"meets an operator"}

var fateTexts = [...]string{"", ", and the answer is lost", ", and the request is slow", ", and the answer is slow",
	", and the request is lost", ", and the request is late"}

// describe is a move in words.
func (x *search) describe(s *state, m move) string {
	if m.kind == pass {
		return moveTexts[pass]
	}
	return fmt.Sprintf("caller %d %s%s", m.who, moveTexts[m.kind], fateTexts[m.fate])
}
