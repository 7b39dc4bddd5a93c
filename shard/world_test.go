package shard

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/holdfast-go/holdfast/lockinfo"
)

const (
	mostProcesses = 3 // that a world has at one moment, with those that died of late
	mostShards    = 4
	newcomer      = 100 // the number of a process until it has one
)

// A small is a world of a few processes and shards, of which all states are searched. The processes
// plan by the functions of this package, and act as balance.go does. The locks are a table: that
// they exclude is searched in proof/explore. Between any two steps of a process, others go on, so
// that it plans by members and holds of which some are gone.
//
// Nobody waits for a shard that no member lacks, or plans what a member must keep. If nothing more
// happens from outside, in any state, the processes can come to their shares, and are quiet then. A
// shard moves a few times at most after an event, and at most twice in a restart of all.
//
// Three processes of weights 1 and 2 are no world here: they can let a shard go to and fro, if each
// plans by what it read before the last move. That is not mended.
type small struct {
	name      string
	processes int
	shards    int
	weights   []int8 // that a process may have
	events    int8   // from outside, at most
	bound     int8   // how often a shard may move after an event, or in a restart
	restart   bool   // the events are a restart of all, one by one, each once all is settled
	stays     bool   // nobody leaves or dies
	returns   bool   // a function may return nil
	depth     int    // how many moves at most; 0: until there is nothing new
}

// A smallState is one of a small world. A process is named by its age, and tokens count from 1, so
// that states that behave alike are one.
type smallState struct {
	processes [mostProcesses]process // the oldest first
	holds     [mostShards]smallHold
	queue     [mostShards][mostProcesses]int8
	moved     [mostShards]int8 // so often since the last event, or since the restart began
	events    int8             // up to now
}

type smallHold struct {
	owner, token int8 // 0: nobody
	moves        int8
	from         int8
	ending       bool // its function was told to return
}

type life int8

const (
	absent life = iota
	living
	leaving // Run ends
	dead
)

type phase int8

const (
	resting phase = iota
	looked        // it has begun a plan
	hasRead       // who holds the shards, maybe long ago
	asked         // it waits for the shards of its plan
)

// A process is what one knows and does.
type process struct {
	id, weight int8
	life       life
	listed     bool // its membership is held
	phase      phase
	unsettled  bool
	settles    bool // the plan is for all that the process lacks
	failed     bool // something of the plan was not to be had
	barred     [mostShards]bool
	seen       [mostProcesses]struct{ id, weight int8 }
	look       [mostShards]smallHold
	asks       [mostShards]struct{ moves, from int8 }
}

// A smallMove is one step of a world.
type smallMove struct {
	kind       int
	who, shard int8
}

// The moves, those first that a calm world makes first. Those from expiry on to resume are of one
// shard, and those from come on from outside.
const (
	expiry = iota // the hold of a process that died
	ending
	giving
	resume
	oblivion // the membership of a process that died
	looking
	kicking
	asking
	reading
	planning
	reminding
	offering
	parting
	come
	leave
	die
	resign
	kinds
)

var moveTexts = [kinds]string{"dies out at", "has returned at", "is told to give back", "may take again",
	"is no member any more", "looks at the members", "has the others look, and asks for the shards of its plan",
	"asks for the shards of its plan", "reads who holds the shards", "begins a plan", "reminds the holders",
	"has too many, and has the others look", "gives up its plan", "comes", "leaves", "dies", "returns nil at"}

func (m smallMove) String() string {
	text := fmt.Sprintf("process %d %s", m.who+1, moveTexts[m.kind])
	if m.kind <= resume || m.kind == resign {
		text += fmt.Sprintf(" shard %d", m.shard)
	}
	return text
}

// apply returns what becomes of a state. It is the same state if the move cannot be made.
func (w *small) apply(s smallState, m smallMove) (t smallState, err error) {
	if t = s; m.kind >= come {
		w.happen(&t, m)
		return t, nil
	}
	p := &t.processes[m.who]
	switch {
	case p.id == 0:
	case m.kind <= resume:
		w.moveShard(&t, p, m)
	case m.kind == oblivion && p.life == dead:
		p.listed = false
	case p.life != living:
	case m.kind == looking && p.seen != s.members():
		p.seen, p.unsettled = s.members(), true
		w.endPlan(&t, p)
	case p.seen[0].id == 0: // it has not looked yet
	case m.kind == planning && p.phase == resting && p.unsettled && p.seen == s.members():
		p.unsettled, p.phase = false, looked
	case m.kind == reading && p.phase == looked:
		p.phase, p.look = hasRead, s.holds
	case m.kind == asking && p.phase == hasRead:
		err = w.ask(&t, p, false)
	case m.kind == kicking && p.phase == hasRead:
		err = w.ask(&t, p, true)
	case m.kind == reminding && p.phase == asked && w.waitsForHolder(&s, p):
		w.remind(&t, p)
	case m.kind == offering && !w.isGiving(&s, p) && w.running(&s, p) > w.shareOf(p).ceiling:
		t.tellOthers(p)
	case m.kind == parting && p.phase == asked:
		w.endPlan(&t, p)
	}
	if t != s {
		w.tidy(&t)
	}
	return t, err
}

// moveShard makes a move of one shard.
func (w *small) moveShard(s *smallState, p *process, m smallMove) {
	h, wanted := &s.holds[m.shard], s.queue[m.shard][0] != 0
	switch {
	case m.kind == resume:
		p.barred[m.shard] = false
	case h.owner != p.id:
	case m.kind == expiry && p.life == dead:
		w.release(s, m.shard)
	case m.kind == giving && p.life == living && !h.ending && wanted:
		h.ending = !w.isGiving(s, p) && w.running(s, p) > w.shareOf(p).floor
	case m.kind == ending && p.life == living && h.ending:
		p.unsettled = true
		w.release(s, m.shard)
	case m.kind == ending && p.life == leaving && (wanted || !s.hasMembers()):
		w.release(s, m.shard)
	}
}

func (w *small) isGiving(s *smallState, p *process) bool {
	return slices.ContainsFunc(s.holds[:], func(h smallHold) bool { return h.owner == p.id && h.ending })
}

func (w *small) release(s *smallState, shard int8) {
	s.holds[shard] = smallHold{}
	next := s.find(s.queue[shard][0])
	if next == nil {
		return
	}
	copy(s.queue[shard][:], s.queue[shard][1:])
	s.queue[shard][mostProcesses-1] = 0
	w.take(s, next, shard)
	w.finishPlan(s, next)
}

func (w *small) take(s *smallState, p *process, shard int8) {
	token := int8(0)
	for _, h := range s.holds {
		token = max(token, h.token)
	}
	for _, other := range s.processes {
		for _, h := range other.look {
			token = max(token, h.token)
		}
	}
	s.holds[shard] = smallHold{owner: p.id, token: token + 1, moves: p.asks[shard].moves, from: p.asks[shard].from}
	s.moved[shard]++
}

// ask makes the plan of a process, and asks for its shards.
func (w *small) ask(s *smallState, p *process, kick bool) error {
	shot, plan, err := w.plan(s, p, p.look)
	if err != nil {
		return err
	}
	if plan.idle && kick {
		s.tellOthers(p)
	}
	planned := len(plan.free)
	p.phase, p.failed = asked, false
	for _, i := range plan.free {
		from := p.look[i].owner
		p.asks[i].moves, p.asks[i].from = int8(shot.moves(i))+min(1, from), from
		switch {
		case s.holds[i].owner == 0:
			w.take(s, p, int8(i))
		case from == 0: // it asks once
			p.failed = true
		default:
			s.enqueue(i, p)
		}
	}
	for _, shards := range plan.pulls {
		planned += len(shards)
		for _, i := range shards {
			p.asks[i].moves, p.asks[i].from = int8(shot.moves(i)+min(1, shot.moves(i))), 0
			if s.holds[i].owner == 0 {
				w.take(s, p, int8(i))
				continue
			}
			s.enqueue(i, p)
		}
	}
	p.settles = !plan.idle && planned == plan.need && p.barred == [mostShards]bool{}
	p.look = [mostShards]smallHold{}
	w.finishPlan(s, p)
	return nil
}

// plan makes the plan of a process by what it has read, and judges it.
func (w *small) plan(s *smallState, p *process, look [mostShards]smallHold) (*snapshot, plan, error) {
	holds, has, barred := make([]lockinfo.Hold, w.shards), map[int]bool{}, map[int]bool{}
	for i := range holds {
		if h := look[i]; h.owner != 0 {
			o := owner{w.shards, 1, nameOf(h.owner), int64(h.moves), nobody}
			if h.from != 0 {
				o.more = nameOf(h.from)
			}
			holds[i] = lockinfo.Hold{State: lockinfo.StateHeld, Owner: o.String(), Token: int64(h.token)}
		}
		mine := s.holds[i].owner == p.id
		has[i], barred[i] = mine, mine || p.barred[i]
	}
	seen := view{members: w.membersFor(p)}
	shot := newSnapshot(nameOf(p.id), seen, holds, has, barred)
	plan := shot.planFor(nameOf(p.id))
	shares := sharesOf(w.shards, seen.members, nil, nil)
	for _, i := range plan.free {
		if id := nameOf(look[i].owner); look[i].owner != p.id && shares[id] != nil {
			return shot, plan, fmt.Errorf("taken: process %d plans shard %d as nobody's, which process %s has", p.id, i, id)
		}
	}
	for from, shards := range plan.pulls {
		if has := len(shot.of[from]); has-len(shards) < shares[from].floor {
			return shot, plan, fmt.Errorf("share: process %d plans %d of %d shards of process %s", p.id, shards, has, from)
		}
	}
	if plan.need > 0 && len(shot.of[nameOf(p.id)])+plan.need > shares[nameOf(p.id)].ceiling {
		return shot, plan, fmt.Errorf("share: process %d plans %d shards more", p.id, plan.need)
	}
	return shot, plan, nil
}

func nameOf(id int8) string { return strconv.Itoa(int(id)) }

// membersFor returns the members that a process saw last.
func (w *small) membersFor(p *process) (members []member) {
	for at, seen := range p.seen {
		if seen.id != 0 {
			o := owner{n: w.shards, weight: int(seen.weight), id: nameOf(seen.id)}
			members = append(members, member{owner: o, token: int64(at)})
		}
	}
	return members
}

func (w *small) shareOf(p *process) *share {
	return sharesOf(w.shards, w.membersFor(p), nil, nil)[nameOf(p.id)]
}

// remind has all look for who waits, and ends a plan that others overtook.
func (w *small) remind(s *smallState, p *process) {
	s.tellOthers(p)
	_, now, _ := w.plan(s, p, s.holds)
	stale := now.need == 0 || len(now.free) > 0
	for _, shards := range now.pulls {
		stale = stale || slices.ContainsFunc(shards, func(i int) bool { return !slices.Contains(s.queue[i][:], p.id) })
	}
	if stale {
		w.endPlan(s, p)
	}
}

func (w *small) waitsForHolder(s *smallState, p *process) bool {
	for i := range s.queue {
		if slices.Contains(s.queue[i][:], p.id) && p.asks[i].from == 0 {
			return true
		}
	}
	return false
}

// endPlan has a process leave all queues.
func (w *small) endPlan(s *smallState, p *process) {
	for i := range s.queue {
		if at := slices.Index(s.queue[i][:], p.id); at >= 0 {
			copy(s.queue[i][at:], s.queue[i][at+1:])
			s.queue[i][mostProcesses-1] = 0
			p.failed = true
		}
	}
	w.finishPlan(s, p)
}

// finishPlan notes that a process waits for nothing more.
func (w *small) finishPlan(s *smallState, p *process) {
	for i := range s.queue {
		if slices.Contains(s.queue[i][:], p.id) {
			return
		}
	}
	if p.phase == asked {
		p.phase, p.unsettled = resting, p.unsettled || !p.settles || p.failed
	}
}

// happen has something happen from outside.
func (w *small) happen(s *smallState, m smallMove) {
	p := &s.processes[m.who]
	if s.events >= w.events || m.kind != come && (w.stays || p.life != living) || w.restart && !w.mayRestart(s, m) {
		return
	}
	switch {
	case m.kind == come && p.id == 0 && int(m.who) < w.processes && (m.who == 0 || s.processes[m.who-1].id != 0):
		*p = process{id: newcomer, weight: w.weights[m.shard], life: living, listed: true, unsettled: true}
	case m.kind == leave:
		w.quit(s, p, leaving)
		p.listed = false
		for i := range s.holds {
			s.holds[i].ending = s.holds[i].ending || s.holds[i].owner == p.id
		}
		s.tellOthers(p)
	case m.kind == die && !w.restart:
		w.quit(s, p, dead)
	case m.kind == resign && w.returns && s.holds[m.shard].owner == p.id && !s.holds[m.shard].ending:
		p.barred[m.shard], p.unsettled = true, true
		w.release(s, m.shard)
	default:
		return
	}
	if s.events++; !w.restart || s.events <= int8(w.processes)+1 {
		s.moved = [mostShards]int8{}
	}
	w.tidy(s)
}

// mayRestart reports whether an event is the next of a restart: all come, and then the oldest
// leaves and another one comes.
func (w *small) mayRestart(s *smallState, m smallMove) bool {
	want := come
	if at := int(s.events) - w.processes; at >= 0 && at%2 == 0 {
		want = leave
	}
	return m.kind == want && (want == come || m.who == 0) && (s.events == 0 || w.fault(*s) == nil && w.isCalm(*s))
}

func (w *small) quit(s *smallState, p *process, how life) {
	w.endPlan(s, p)
	*p = process{id: p.id, weight: p.weight, life: how, listed: p.listed}
}

func (s *smallState) find(id int8) *process {
	for i := range s.processes {
		if id != 0 && s.processes[i].id == id {
			return &s.processes[i]
		}
	}
	return nil
}

func (s *smallState) members() (all [mostProcesses]struct{ id, weight int8 }) {
	at := 0
	for _, p := range s.processes {
		if p.listed {
			all[at].id, all[at].weight = p.id, p.weight
			at++
		}
	}
	return all
}

func (s *smallState) hasMembers() bool {
	return slices.ContainsFunc(s.processes[:], func(p process) bool { return p.life == living })
}

func (s *smallState) tellOthers(p *process) {
	for i := range s.processes {
		if other := &s.processes[i]; other != p && other.life == living {
			other.unsettled = true
		}
	}
}

func (s *smallState) enqueue(shard int, p *process) {
	s.queue[shard][slices.Index(s.queue[shard][:], 0)] = p.id
}

// tidy forgets what changes nothing any more, and names all anew.
func (w *small) tidy(s *smallState) {
	kept := 0
	for _, p := range s.processes {
		has := slices.ContainsFunc(s.holds[:], func(h smallHold) bool { return h.owner == p.id })
		if p.life == living || p.listed || p.life != absent && has {
			s.processes[kept] = p
			kept++
		}
	}
	clear(s.processes[kept:])
	var ids, tokens [128]int8
	last := int8(0)
	name := func(id *int8) {
		if *id != 0 && ids[*id] == 0 {
			last++
			ids[*id] = last
		}
		*id = ids[*id]
	}
	holds := func(yield func(h *smallHold)) {
		for i := range s.holds {
			yield(&s.holds[i])
		}
		for who := range s.processes {
			for i := range s.processes[who].look {
				yield(&s.processes[who].look[i])
			}
		}
	}
	for who := range s.processes {
		p := &s.processes[who]
		for i := range p.asks {
			if !slices.Contains(s.queue[i][:], p.id) {
				p.asks[i].moves, p.asks[i].from = 0, 0
			}
		}
		if p.life == living && p.unsettled && p.seen[0].id != 0 && w.running(s, p) >= w.shareOf(p).ceiling {
			p.unsettled = false
		}
		name(&p.id)
	}
	for who := range s.processes {
		p := &s.processes[who]
		for i := range p.seen {
			name(&p.seen[i].id)
		}
		for i := range p.asks {
			name(&p.asks[i].from)
		}
	}
	holds(func(h *smallHold) { name(&h.owner); name(&h.from); tokens[h.token] = 1 })
	for i := range s.queue {
		for at := range s.queue[i] {
			name(&s.queue[i][at])
		}
	}
	next := int8(0)
	for i := 1; i < len(tokens); i++ {
		if tokens[i] != 0 {
			next++
			tokens[i] = next
		}
	}
	holds(func(h *smallHold) { h.token = tokens[h.token] })
}

// fault returns what is not as it should be once all is calm.
func (w *small) fault(s smallState) error {
	if !s.hasMembers() {
		return nil
	}
	for _, p := range s.processes {
		if p.id != 0 && p.life != living {
			return errors.New("a process that is none is there")
		}
		if share := (*share)(nil); p.id != 0 {
			if p.seen != s.members() {
				return fmt.Errorf("process %d does not know the members", p.id)
			}
			share = w.shareOf(&p)
			if has := w.running(&s, &p); has < share.floor || has > share.ceiling {
				return fmt.Errorf("fair: process %d has %d shards, its share is %d to %d", p.id, has, share.floor, share.ceiling)
			}
		}
	}
	for i := range w.shards {
		if s.holds[i].owner == 0 || s.holds[i].ending {
			return fmt.Errorf("fair: nobody runs shard %d", i)
		}
	}
	return nil
}

func (w *small) running(s *smallState, p *process) (n int) {
	for _, h := range s.holds {
		if h.owner == p.id && !h.ending {
			n++
		}
	}
	return n
}
