package explore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// A space is the states that can be reached from one.
type space[S any] interface {
	start() S
	moves(all []move, s S) []move                 // what can happen next
	apply(s S, m move) (t S, r *Request, e error) // what comes of it, what a server was asked, the rule it breaks
	key(s S) key
	calmEnd(s S) error // the rule that is judged by what may come
	describe(s S, m move) string
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
	Code     string // of the moves, for World.Tell
	Lines    []string
	Requests []Request // in the order in which they reached the server
}

func (s *Story) String() string { return strings.Join(s.Lines, "\n") }

// A node is how a state was reached first.
type node struct {
	from uint32
	move move
}

// A reached state is one from which the search goes on.
type reached[S any] struct {
	state S
	node  uint32
}

// Explore visits the states of a world, those first that are reached by fewer moves.
func (w *World) Explore() *Result {
	x := &search{World: w, calm: map[key]struct{}{}}
	var out *Result
	if w.Masters > 0 {
		out = visit(&quorum{x}, w.Depth)
	} else {
		out = visit(x, w.Depth)
	}
	out.World = w.Name
	return out
}

func visit[S any](x space[S], depth int) *Result {
	out := &Result{}
	root := x.start()
	seen := map[key]struct{}{x.key(root): {}}
	nodes := make([]node, 1)
	var can []move
	for level := []reached[S]{{root, 0}}; len(level) > 0 && (depth == 0 || out.Depth < depth); out.Depth++ {
		var next []reached[S]
		for i, from := range level {
			level[i] = reached[S]{} // it is not needed any more
			can = x.moves(can[:0], from.state)
			for _, m := range can {
				out.Moves++
				t, _, err := x.apply(from.state, m)
				if err == nil {
					at := x.key(t)
					if _, known := seen[at]; known {
						continue
					}
					seen[at] = struct{}{}
					err = x.calmEnd(t)
				}
				nodes = append(nodes, node{from.node, m})
				if err != nil {
					out.Broken, out.Story, out.States = err, story(x, nodes, err), len(seen)
					return out
				}
				next = append(next, reached[S]{t, uint32(len(nodes) - 1)})
			}
		}
		out.Whole = len(next) == 0
		level = next
	}
	out.States = len(seen)
	return out
}

// story tells how the last of the nodes was reached.
func story[S any](x space[S], nodes []node, broken error) (out Story) {
	var all []move
	for at := uint32(len(nodes) - 1); at != 0; at = nodes[at].from {
		all = append(all, nodes[at].move)
	}
	slices.Reverse(all)
	s := x.start()
	for _, m := range all {
		s, _ = tell(x, &out, s, m)
	}
	out.Lines = append(out.Lines, broken.Error())
	return out
}

func tell[S any](x space[S], out *Story, s S, m move) (S, error) {
	line := x.describe(s, m)
	t, r, err := x.apply(s, m)
	if r != nil {
		out.Requests = append(out.Requests, *r)
		line += fmt.Sprintf(": %s: %s", r, r.Answer())
	}
	out.Code += fmt.Sprintf("%d.%d.%d.%d ", m.kind, m.who, m.arg, m.fate)
	out.Lines = append(out.Lines, line)
	return t, err
}

// Tell tells the story of a code. It ends early where it breaks a rule.
func (w *World) Tell(code string) (out Story) {
	x := &search{World: w}
	s := x.start()
	for text := range strings.FieldsSeq(code) {
		var m move
		if _, err := fmt.Sscanf(text, "%d.%d.%d.%d", &m.kind, &m.who, &m.arg, &m.fate); err != nil {
			panic(err)
		}
		var err error
		if s, err = tell(x, &out, s, m); err != nil {
			break
		}
	}
	return out
}

// Walk tells a story of random moves.
func (w *World) Walk(dice *rand.Rand, moves int) (out Story) {
	x := &search{World: w}
	s := x.start()
	for range moves {
		can := x.moves(nil, s)
		var err error
		if s, err = tell(x, &out, s, can[dice.IntN(len(can))]); err != nil {
			break
		}
	}
	return out
}

var moveTexts = [...]string{"a tick passes", "begins an attempt", "asks", "asks for all", "gives up", "renews",
	"releases", "gives back", "yields", "downgrades", "waits at its place", "ends its wait", "dies at its place",
	"detaches", "crashes", "hears that it holds", "retains its hold", "enters its hold", "hears that another asks",
	"reaches the server", "is answered", "sent what comes late",
	"meets an operator", "forgets"}

var fateTexts = [...]string{"", ", and the answer is lost", ", and the request is slow", ", and the answer is slow",
	", and the request is lost", ", and the request is late"}

func (x *search) describe(s *state, m move) string { return describe(s.now, m) }

func describe(now int64, m move) string {
	if m.kind == pass {
		return fmt.Sprintf("tick %d: %s", now-first, moveTexts[pass])
	}
	return fmt.Sprintf("tick %d: caller %d %s%s", now-first, m.who, moveTexts[m.kind], fateTexts[m.fate])
}
