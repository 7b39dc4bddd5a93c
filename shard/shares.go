package shard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/lockinfo"
)

// An owner is what the owner of a hold says: "shard N WEIGHT ID NUMBER MORE". Of a member's hold,
// NUMBER is the token of its first hold, which says how old the member is, and MORE tells its holds
// apart. Of a shard's hold they are how often it has moved, and the member that left it behind.
type owner struct {
	n, weight int
	id        string
	number    int64
	more      string
}

const nobody = "-"

func (o owner) String() string {
	return fmt.Sprintf("shard %d %d %s %d %s", o.n, o.weight, o.id, o.number, cmp.Or(o.more, nobody))
}

// parseOwner reads the owner of a hold. It is false if none of ours wrote it.
func parseOwner(text string) (o owner, ok bool) {
	n, _ := fmt.Sscanf(text, "shard %d %d %s %d %s", &o.n, &o.weight, &o.id, &o.number, &o.more)
	return o, n == 5 && o.n >= 1 && o.weight >= 1 && o.weight <= maxWeight
}

// A member is a process that takes part.
type member struct {
	owner
	token int64         // of its first hold: the smaller, the older
	left  time.Duration // until its last hold ends, if that is not renewed
	ttl   time.Duration
	label string
}

// membersOf reads the members from the holds of the name, the oldest first. A member that is about
// to renew its channel has two holds.
func membersOf(info lockinfo.Info) (members []member, foreign string) {
	byID := map[string]member{}
	for _, hold := range info.Holds {
		o, ours := parseOwner(hold.Owner)
		switch {
		case hold.Remainder():
			continue
		case !ours:
			foreign = cmp.Or(hold.Label, "another program")
			continue
		}
		m := member{o, hold.Token, hold.Remaining, hold.TTL, hold.Label}
		if o.number > 0 {
			m.token = o.number
		}
		if known, ok := byID[o.id]; ok {
			m.token, m.left = min(m.token, known.token), max(m.left, known.left)
		}
		byID[o.id] = m
	}
	members = slices.SortedFunc(maps.Values(byID), func(a, b member) int { return cmp.Compare(a.token, b.token) })
	return members, foreign
}

// A share is how many shards a member should have.
type share struct{ floor, ceiling, target int }

// sharesOf divides n shards between the members. They have so many now, and if a member had its
// floor, the last shard that it would give has this rank: the larger, the more the member keeps it.
func sharesOf(n int, members []member, has, last map[string]int) map[string]*share {
	sum := 0
	for _, m := range members {
		sum += m.weight
	}
	shares, rest, left := map[string]*share{}, map[string]int{}, n
	var candidates []member
	for _, m := range members {
		down := n * m.weight / sum
		shares[m.id], rest[m.id], left = &share{down, down, down}, n*m.weight%sum, left-down
		if rest[m.id] > 0 {
			shares[m.id].ceiling++
			candidates = append(candidates, m)
		}
	}
	hasMore := func(m member) int { return min(1, max(0, has[m.id]-shares[m.id].floor)) }
	slices.SortStableFunc(candidates, func(a, b member) int {
		return cmp.Or(cmp.Compare(hasMore(b), hasMore(a)), cmp.Compare(last[b.id], last[a.id]),
			cmp.Compare(rest[b.id], rest[a.id]), cmp.Compare(b.token, a.token))
	})
	for _, m := range candidates[:left] {
		shares[m.id].target++
	}
	return shares
}

// A plan says which shards a process takes.
type plan struct {
	free  []int            // nobody holds them, or a process that is no member
	pulls map[string][]int // of each holder
	need  int              // how many shards the process lacks
	idle  bool             // shards are free that are for others
}

// A snapshot is who has which shard, for a plan.
type snapshot struct {
	view
	holds  []lockinfo.Hold
	owners []owner          // of the holds
	of     map[string][]int // of each member, those that it gives first before the others
	free   []int            // nobody has them, or a process that is no member
	rank   []int            // of each shard in the order in which shards are given
}

// newSnapshot takes the shards that the member itself has for its own. It leaves out those that the
// member may not take now: they are barred.
func newSnapshot(id string, seen view, holds []lockinfo.Hold, has, barred map[int]bool) *snapshot {
	s := &snapshot{seen, holds, make([]owner, len(holds)), map[string][]int{}, nil, make([]int, len(holds))}
	for i, hold := range holds {
		o, ours := parseOwner(hold.Owner)
		s.owners[i] = o
		isMember := slices.ContainsFunc(seen.members, func(m member) bool { return m.id == o.id })
		switch {
		case has[i]:
			s.of[id] = append(s.of[id], i)
		case barred[i]:
		case ours && !hold.Remainder() && isMember && o.id != id:
			s.of[o.id] = append(s.of[o.id], i)
		default:
			s.free = append(s.free, i)
		}
	}
	for at, i := range s.giveOrder() {
		s.rank[i] = at
	}
	first := func(a, b int) int { return cmp.Compare(s.rank[a], s.rank[b]) }
	for _, shards := range s.of {
		slices.SortFunc(shards, first)
	}
	// The oldest members get the shards that moved least. In a restart of all, the youngest stay.
	slices.SortFunc(s.free, func(a, b int) int { return cmp.Or(cmp.Compare(s.moves(a), s.moves(b)), first(a, b)) })
	return s
}

// lately is how long a shard counts as moved.
const lately = time.Hour

// moves returns how often a shard has moved lately, from the first member that left it behind on.
func (s *snapshot) moves(i int) int64 {
	if s.at.Sub(s.holds[i].Since) > lately {
		return 0
	}
	return s.owners[i].number
}

// giveOrder is the order in which shards are given back: first those of the member that left last.
// So a process that comes back gets what it had. Shards that moved twice lately come last.
func (s *snapshot) giveOrder() []int {
	left := map[string]int64{}
	for i, o := range s.owners {
		if s.moves(i) > 0 && o.more != nobody {
			left[o.more] = max(left[o.more], s.holds[i].Token)
		}
	}
	newest := func(i int) int64 {
		if at := left[s.owners[i].more]; s.moves(i) > 0 && at > 0 {
			return at
		}
		return s.holds[i].Token
	}
	order := make([]int, len(s.holds))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := s.moves(a), s.moves(b)
		return cmp.Or(cmp.Compare(min(x, 2)/2, min(y, 2)/2), cmp.Compare(newest(b), newest(a)), cmp.Compare(x, y),
			cmp.Compare(s.holds[b].Token, s.holds[a].Token))
	})
	return order
}

// planFor makes the plan of a member. The members below their share are served in the order of
// their age.
func (s *snapshot) planFor(id string) (p plan) {
	has, last := map[string]int{}, map[string]int{}
	floors := sharesOf(len(s.holds), s.members, nil, nil)
	for _, m := range s.members {
		has[m.id] = len(s.of[m.id])
		if over := has[m.id] - floors[m.id].floor; over > 0 {
			last[m.id] = s.rank[s.of[m.id][over-1]]
		}
	}
	shares := sharesOf(len(s.holds), s.members, has, last)
	var surplus []int
	holder := map[int]string{}
	for _, m := range s.members {
		for _, i := range s.of[m.id][:max(0, has[m.id]-shares[m.id].target)] {
			surplus, holder[i] = append(surplus, i), m.id
		}
	}
	slices.SortFunc(surplus, func(a, b int) int { return cmp.Compare(s.rank[a], s.rank[b]) })
	free := s.free
	for _, m := range s.members {
		need := max(0, shares[m.id].target-has[m.id])
		first := min(need, len(free))
		second := min(need-first, len(surplus))
		if m.id == id {
			p = plan{free[:first], map[string][]int{}, need, p.idle}
			for _, i := range surplus[:second] {
				p.pulls[holder[i]] = append(p.pulls[holder[i]], i)
			}
		}
		p.idle = p.idle || m.id != id && first > 0
		free, surplus = free[first:], surplus[second:]
	}
	return p
}
