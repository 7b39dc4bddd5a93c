package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// A lottery is what the parent knows. One goroutine uses it.
type lottery struct {
	Config
	State
	processes map[int]*os.Process   // of the workers that are alive
	tasks     map[int]*json.Encoder // to the workers
	reports   chan report
	tokens    []int64 // of all leases, in the order in which they were granted
	results   string  // of the trials, for the summary
	problems  []error

	// Of this round:
	busy      int             // workers that are not ready, or did not have their turn
	trial     trial           // what happens to the first holder
	released  time.Time       // when the last holder was sent to release the lock
	handOvers []time.Duration // after the draw, from a release to the grant of the next worker

	// The ledger:
	winner         int   // of this round; 0: nobody drew
	largest        int64 // token
	draws, doubles int   // draws that it took, and that it refused as the round was drawn
}

// A State is what a view shows.
type State struct {
	Round  int
	Marks  []string // one for each round; the first is for the start
	Doing  []string // what each worker does; the first is worker 1
	Holder int      // 0: nobody
	Token  string
	Until  time.Time     // the end of the holder's trust
	Lasts  time.Duration // from the grant, or the trial, to Until
	Text   string        // what happened since the last State, as lines
}

func newLottery(c Config) *lottery {
	l := &lottery{Config: c, processes: map[int]*os.Process{}, tasks: map[int]*json.Encoder{},
		reports: make(chan report), busy: c.Workers, trial: trial{task: draw}}
	l.Marks = append([]string{""}, slices.Repeat([]string{"·"}, c.Rounds)...)
	l.Doing = slices.Repeat([]string{"ready"}, c.Workers)
	return l
}

// answer needs no error: the end of a process is reported.
func (l *lottery) answer(worker int, t task) {
	if tasks := l.tasks[worker]; tasks != nil {
		_ = tasks.Encode(t)
	}
}

// tell adds a line about a worker.
func (l *lottery) tell(worker int, format string, args ...any) {
	l.Text += fmt.Sprintf("  worker %-2d %s\n", worker, fmt.Sprintf(format, args...))
}

func (l *lottery) show() {
	s := l.State
	s.Marks, s.Doing, l.Text = slices.Clone(s.Marks), slices.Clone(s.Doing), ""
	l.View(s)
}

// number is a token for people: #1 is the first that was granted, and so on.
func (l *lottery) number(token int64) string {
	return fmt.Sprintf("#%d", slices.Index(l.tokens, token)+1)
}

// problem is for what must not happen. The error is for a worker that cannot go on: it may hold the
// lock, and the others would wait until the end of the demo.
func (l *lottery) problem(worker int, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	l.problems = append(l.problems, fmt.Errorf("round %d, worker %d: %s", l.Round, worker, text))
	l.Marks[l.Round] = "!"
	l.tell(worker, "PROBLEM: %s", text)
	return fmt.Errorf("worker %d could not go on", worker)
}

// open begins a round for all workers that are alive, in the random order of a map.
func (l *lottery) open() {
	l.Round++
	l.busy, l.trial = len(l.processes), trial{task: l.taskIn(l.Round)}
	l.Holder, l.winner, l.handOvers = 0, 0, nil
	l.Text += fmt.Sprintf("\nround %d: %d processes want to draw\n", l.Round, l.busy)
	for n := range l.processes {
		l.Doing[n-1] = "waits"
		l.answer(n, leave)
	}
}

// judge takes a report down and answers it.
func (l *lottery) judge(r report) error {
	switch r.Step {
	case ready:
		l.busy--
	case entered:
		return l.takeEntry(r)
	case leaving:
		return l.takeExit(r)
	case ended:
		if l.trial.task != kill || l.trial.worker != r.Worker {
			return l.problem(r.Worker, "%s", r.Failed)
		}
		delete(l.processes, r.Worker)
		return l.finishTurn()
	}
	return nil
}

func (l *lottery) takeEntry(r report) error {
	if !l.NoLock {
		l.judgeEntry(r)
	}
	switch t := &l.trial; {
	case l.winner != 0:
		l.handOvers = append(l.handOvers, min(r.Granted.Sub(l.released), r.Granted.Sub(r.Waiting)))
		l.answer(r.Worker, leave)
		return nil
	case l.NoLock:
		l.Doing[r.Worker-1] = "believes it holds"
		l.tell(r.Worker, "believes it holds the lock, and sees no draw")
	case t.worker != 0:
		t.took = r.Granted.Sub(t.began)
		l.tell(r.Worker, "takes over %v after %s, token %s", t.took.Round(10*time.Millisecond),
			trialWords[t.task].start, l.Token)
	default:
		l.tell(r.Worker, "holds the lock, token %s", l.Token)
		if t.task != draw {
			return l.begin(r.Worker)
		}
	}
	l.answer(r.Worker, draw)
	return nil
}

// judgeEntry judges what the lock promises: one holder at a time, and tokens that grow.
func (l *lottery) judgeEntry(r report) {
	if l.Holder != 0 && l.Holder != l.trial.worker {
		_ = l.problem(r.Worker, "got the lock while worker %d held it", l.Holder)
	}
	if n := len(l.tokens); n > 0 && r.Token <= l.tokens[n-1] {
		_ = l.problem(r.Worker, "token %d came after %d", r.Token, l.tokens[n-1])
	}
	l.tokens = append(l.tokens, r.Token)
	l.Holder, l.Token, l.Doing[r.Worker-1] = r.Worker, l.number(r.Token), "HOLDS"
	l.Until, l.Lasts = r.Until, l.TTL
}

func (l *lottery) takeExit(r report) error {
	if l.Holder == r.Worker {
		l.Holder = 0
	}
	if r.Ticket > 0 {
		l.draw(r)
	}
	if r.Lost != "" {
		l.tell(r.Worker, "learns that its lease is lost: %s", r.Lost)
		if l.trial.worker == r.Worker {
			l.trial.seen += "; loss seen"
		}
	}
	l.Doing[r.Worker-1] = "had its turn"
	l.released = time.Now().Round(0) // compared with the times of other processes
	l.answer(r.Worker, leave)
	return l.finishTurn()
}

// draw is the ledger. A draw that it refuses leaves it as it was.
func (l *lottery) draw(r report) {
	if l.NoLock {
		r.Token = l.largest + 1 // without a lock, there are no tokens to compare
	}
	switch {
	case r.Token <= l.largest && l.trial.task == stop && l.trial.worker == r.Worker:
		l.trial.seen += "; late draw refused"
		l.tell(r.Worker, "draws late: REFUSED by the ledger, token %s is older than %s", l.number(r.Token),
			l.number(l.largest))
	case r.Token <= l.largest:
		_ = l.problem(r.Worker, "draw REFUSED by the ledger: token %d is not larger than %d", r.Token, l.largest)
	case l.winner != 0:
		l.doubles++
		l.Marks[l.Round] = "!"
		l.tell(r.Worker, "wants to draw TOO: REFUSED by the ledger, worker %d drew", l.winner)
	default:
		l.draws++
		l.winner, l.largest = r.Worker, r.Token
		if l.trial.worker == 0 {
			l.Marks[l.Round] = "✓"
		}
		l.tell(r.Worker, "draws: ticket %04d wins", r.Ticket)
	}
}

// finishTurn is called when a worker had its turn, or was killed.
func (l *lottery) finishTurn() error {
	l.busy--
	switch late := l.trial.worker; {
	case l.busy == 1 && l.trial.task == stop:
		l.tell(late, "goes on, and draws without another look at its lease")
		if err := l.processes[late].Signal(l.Resume); err != nil {
			return l.problem(late, "%v", err)
		}
	case l.busy == 0 && l.winner == 0:
		return errors.New("nobody drew")
	case l.busy == 0:
		if others := len(l.handOvers); others > 0 && !l.NoLock {
			slices.Sort(l.handOvers)
			median := l.handOvers[(others-1)/2].Round(10 * time.Microsecond)
			l.Text += fmt.Sprintf("  others that hold it in turn, and see the draw: %d; hand-over %v\n", others, median)
		}
		l.endTrial()
	}
	return nil
}

func (l *lottery) summary() string {
	text := fmt.Sprintf("rounds        %d\ndraws         %d\ndouble draws  %d\n", l.Rounds, l.draws, l.doubles)
	if !l.NoLock && len(l.problems) == 0 {
		text += fmt.Sprintf("tokens        %d leases, each token larger than the one before\n", len(l.tokens))
	}
	return text + l.results
}

// findBroken is nil if all went as promised.
func (l *lottery) findBroken() error {
	errs := slices.Clone(l.problems)
	if l.doubles > 0 {
		errs = append(errs, fmt.Errorf("%d double draws were tried", l.doubles))
	}
	return errors.Join(errs...)
}

// A trial is what happens to the first holder of a round if its task is not just to draw.
type trial struct {
	task   task
	worker int // 0: it did not begin
	began  time.Time
	took   time.Duration // until the next worker held the lock
	limit  time.Duration // the most that took may be
	seen   string        // what else happened, as the summary says it
}

// trialWords are for the views, and seen is to be that of the trial. story has a verb for a time.
var trialWords = []struct{ title, start, mark, doing, story, seen string }{
	stop: {"stopped", "the stop", "S", "stopped",
		"is stopped before it draws; its lease lasts up to %v more", "; late draw refused; loss seen"},
	overstay: {"max hold", "the grant", "M", "HOLDS on and on", "takes its time, and renews; its max hold is %v",
		"; loss seen"},
	kill: {"kill -9", "the kill", "K", "killed", "is killed with -9 before it draws; its lease lasts up to %v more",
		""},
}

// taskIn is the task of the first holder in a round. Rounds without a trial come before, between
// and after. The kill is the last trial, as it costs a worker.
func (c *Config) taskIn(round int) task {
	switch n := c.Rounds; {
	case c.NoLock:
		return draw // nobody would notice
	case round == (3*n+3)/4:
		return kill
	case round == (n+3)/4 && c.Pause != nil:
		return stop
	case round == (n+1)/2:
		return overstay
	}
	return draw
}

func (c *Config) maxHold() time.Duration { return c.TTL + c.TTL/4 }

// begin puts the holder on trial. Other workers may enter when its lease is over, whatever the
// holder itself believes.
func (l *lottery) begin(worker int) (err error) {
	t, words := &l.trial, trialWords[l.trial.task]
	t.worker, t.began = worker, time.Now().Round(0) // compared with the times of other processes
	switch t.task {
	case kill:
		err = l.processes[worker].Kill()
	case stop:
		err = l.processes[worker].Signal(l.Pause)
	case overstay:
		l.Lasts = l.maxHold()
	}
	if err != nil {
		return l.problem(worker, "%v", err)
	}
	t.limit, l.Until = l.Lasts+l.Slack, t.began.Add(l.Lasts)
	l.Marks[l.Round], l.Doing[worker-1] = words.mark, words.doing
	l.tell(worker, words.story, l.Lasts)
	l.answer(worker, t.task) // a stopped worker reads it later
	return nil
}

// endTrial judges a trial: the holder was replaced in time, and what else was to happen was seen.
func (l *lottery) endTrial() {
	t, words := &l.trial, trialWords[l.trial.task]
	if t.worker == 0 {
		return
	}
	if t.took <= 0 || t.took > t.limit {
		_ = l.problem(t.worker, "replaced %v after %s, limit %v", t.took, words.start, t.limit)
	}
	if t.seen != words.seen {
		_ = l.problem(t.worker, "after %s, %q was seen, and not %q", words.start, t.seen, words.seen)
	}
	took := t.took.Round(10 * time.Millisecond)
	l.results += fmt.Sprintf("%-13s replaced after %v, limit %v%s\n", words.title, took, t.limit, t.seen)
}
