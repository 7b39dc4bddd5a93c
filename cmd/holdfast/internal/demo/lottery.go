package demo

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"
)

// A lottery is what the parent knows. One goroutine uses it.
type lottery struct {
	Config
	State
	processes map[int]*process // of the workers that are alive
	reports   chan report
	busy      map[int]bool // workers that are not ready for the next round
	turns     []turn
	newest    int64    // token
	trial     *outcome // of this round; without a worker before
	overdue   <-chan time.Time

	winners  map[int]int // the ledger: by round
	largest  int64       // the ledger: token
	doubles  int         // draws that the ledger refused as the round was drawn
	problems []error
	trials   []*outcome
}

// A process is a worker as the parent sees it.
type process struct {
	*os.Process
	answers *json.Encoder
}

// A turn is one hold of the lock. released is zero for a holder that was killed.
type turn struct {
	round, worker         int
	token                 int64
	waiting, at, released time.Time
}

// A State is what a view shows.
type State struct {
	Round  int
	Marks  []string // one for each round
	Doing  []string // what each worker does; the first is worker 1
	Holder int      // 0: nobody
	Token  string
	Until  time.Time // the end of the holder's trust
	Text   string    // what happened since the last State, as lines
}

func newLottery(c Config) *lottery {
	l := &lottery{Config: c, processes: map[int]*process{}, reports: make(chan report), busy: map[int]bool{},
		trial: &outcome{}, winners: map[int]int{}}
	l.Marks, l.Doing = slices.Repeat([]string{"·"}, c.Rounds), slices.Repeat([]string{"ready"}, c.Workers)
	for n := range c.Workers {
		l.busy[n+1] = true
	}
	return l
}

// answer needs no error: the end of a process is reported.
func (l *lottery) answer(number int, a answer) {
	if p := l.processes[number]; p != nil {
		_ = p.answers.Encode(a)
	}
}

// tell adds a line about a worker. mark is for the round, and doing for the worker; "": as before.
func (l *lottery) tell(number int, mark, doing, format string, args ...any) {
	if mark != "" && l.Round > 0 {
		l.Marks[l.Round-1] = mark
	}
	if doing != "" {
		l.Doing[number-1] = doing
	}
	l.Text += fmt.Sprintf("  worker %-2d %s\n", number, fmt.Sprintf(format, args...))
}

func (l *lottery) show() {
	s := l.State
	s.Marks, s.Doing, l.Text = slices.Clone(s.Marks), slices.Clone(s.Doing), ""
	l.View(s)
}

// number is a token for people: #1 is the first that was seen, and so on.
func (l *lottery) number(token int64) string {
	return fmt.Sprintf("#%d", 1+slices.IndexFunc(l.turns, func(t turn) bool { return t.token == token }))
}

// problem is for what must not happen. The error is for a worker that cannot go on: it may hold the
// lock, and the others would wait until the end of the demo.
func (l *lottery) problem(number int, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	l.problems = append(l.problems, fmt.Errorf("round %d, worker %d: %s", l.Round, number, text))
	l.tell(number, "!", "", "PROBLEM: %s", text)
	return fmt.Errorf("worker %d could not go on", number)
}

// open begins a round for all workers that are alive, in the random order of a map.
func (l *lottery) open() {
	l.Round++
	l.trial, l.Holder = &outcome{}, 0
	l.Text = fmt.Sprintf("\nround %d: %d processes want to draw\n", l.Round, len(l.processes))
	for n := range l.processes {
		l.busy[n], l.Doing[n-1] = true, "waits"
	}
	l.show()
	for n := range l.processes {
		l.answer(n, answer{Trial: l.trialOf(l.Round)})
	}
}

// judge takes a report down and answers it.
func (l *lottery) judge(r report) error {
	switch r.Step {
	case entered:
		return l.entered(r)
	case renewed:
		if l.Holder == r.Worker {
			l.Until = r.Until
		}
	case leaving:
		l.leaving(r)
	case ready, ended:
		return l.finished(r)
	}
	return nil
}

func (l *lottery) entered(r report) error {
	drawn, kind := l.winners[l.Round] != 0, l.trialOf(l.Round)
	if l.NoLock {
		if !drawn {
			l.tell(r.Worker, "", "believes it holds", "believes it holds the lock, and sees no draw")
		}
		l.answer(r.Worker, answer{Drawn: drawn})
		return nil
	}
	if l.Holder != 0 && l.Holder != l.trial.worker {
		_ = l.problem(r.Worker, "got the lock while worker %d held it", l.Holder)
	}
	if r.Token <= l.newest {
		_ = l.problem(r.Worker, "token %d came after %d", r.Token, l.newest)
	}
	l.newest = max(l.newest, r.Token)
	l.turns = append(l.turns, turn{round: l.Round, worker: r.Worker, token: r.Token, waiting: r.Waiting, at: r.At})
	l.Holder, l.Token, l.Until, l.Doing[r.Worker-1] = r.Worker, l.number(r.Token), r.Until, "HOLDS"
	switch {
	case l.overdue != nil:
		l.trial.took, l.overdue = r.At.Sub(l.trial.began), nil
		l.tell(r.Worker, "", "", "takes over %s after %s, token %s", short(l.trial.took), trialStarts[kind], l.Token)
	case !drawn:
		l.tell(r.Worker, "", "", "holds the lock, token %s", l.Token)
		if kind != none {
			return l.begin(kind, r.Worker)
		}
	}
	l.answer(r.Worker, answer{Drawn: drawn})
	return nil
}

func (l *lottery) leaving(r report) {
	if l.Holder == r.Worker {
		l.Holder = 0
	}
	if r.Ticket > 0 {
		l.draw(r)
	}
	if r.Lost != "" {
		l.tell(r.Worker, "", "lost its lease", "learns that its lease is lost: %s", r.Lost)
		l.trial.lost = l.trial.lost || l.trial.worker == r.Worker
	}
	l.answer(r.Worker, answer{})
}

// draw is the ledger. A draw that it refuses leaves it as it was.
func (l *lottery) draw(r report) {
	if l.NoLock {
		r.Token = l.largest + 1 // without a lock, there are no tokens to compare
	}
	switch winner := l.winners[l.Round]; {
	case r.Token <= l.largest && l.trial.worker == r.Worker && l.trial.kind == stop:
		l.trial.refused = true
		l.tell(r.Worker, "", "", "draws late: REFUSED by the ledger, token %s is older than %s", l.number(r.Token), l.number(l.largest))
	case r.Token <= l.largest:
		_ = l.problem(r.Worker, "draw REFUSED by the ledger: token %d is not larger than %d", r.Token, l.largest)
	case winner != 0:
		l.doubles++
		l.tell(r.Worker, "!", "", "wants to draw TOO: REFUSED by the ledger, worker %d drew", winner)
	default:
		l.winners[l.Round], l.largest = r.Worker, r.Token
		l.tell(r.Worker, map[trial]string{none: "✓"}[l.trial.kind], "", "draws: ticket %04d wins", r.Ticket)
	}
}

// finished is the end of a worker's round, or of its process.
func (l *lottery) finished(r report) error {
	delete(l.busy, r.Worker)
	here := slices.IndexFunc(l.turns, func(t turn) bool { return t.round == l.Round })
	for i := max(here, 0); i < len(l.turns); i++ {
		if t := &l.turns[i]; t.worker == r.Worker {
			t.released = r.At
		}
	}
	switch {
	case r.Step == ended && l.trial.worker == r.Worker && l.trial.kind == kill:
		delete(l.processes, r.Worker)
	case r.Failed != "":
		return l.problem(r.Worker, "%s", r.Failed)
	case l.Round > 0:
		l.Doing[r.Worker-1] = "had its turn"
	}
	if late := l.trial.worker; l.trial.kind == stop && len(l.busy) == 1 && l.busy[late] {
		l.tell(late, "", "goes on, too late", "goes on, and draws without another look at its lease")
		if err := l.processes[late].Signal(l.Resume); err != nil {
			return l.problem(late, "%v", err)
		}
	}
	if len(l.busy) == 0 && here >= 0 {
		if took := handOvers(l.turns[here:]); len(took) > 0 {
			l.Text += fmt.Sprintf("  others that hold it in turn, and see the draw: %d; hand-over %s\n",
				len(l.turns[here:])-1-min(l.trial.worker, 1), short(quantile(took, 0.5)))
		}
	}
	return nil
}
