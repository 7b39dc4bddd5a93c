package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// A role is what a process needs to know. It is the first line on its standard input.
type role struct {
	Name  string        // A, B, C
	Lock  string        // a key of locks
	Addrs []string      // of its servers
	Clock time.Duration // so far its clock is ahead; only a naive lock looks at it
	Every time.Duration // between two tries of a naive lock that waits; 0: pollEvery
	TTL   time.Duration // of its holds; 0: ttl

	Chinese bool // what it reports
}

// The orders to a process. Each is answered when it is done.
const (
	orderTry   = "try"   // enter if the lock is free
	orderWait  = "wait"  // enter, however long it takes
	orderLeave = "leave" // stop working and release
	orderWrite = "write" // write to the storage without another look at the lock
)

// A report goes from a process to the play.
type report struct {
	Kind  string
	At    time.Time
	Text  string // for the time line
	In    bool   // of an answer: the process is inside
	Error string // the process cannot go on
}

// The kinds of reports.
const (
	reportLine  = "line"  // something for the time line
	reportEnter = "enter" // the process is inside from At on
	reportStop  = "stop"  // it worked for the last time at At
	reportDone  = "done"  // the answer to an order
)

// A tenure is the time that a process was inside its lock.
type tenure struct {
	Name     string
	From, To time.Time // To is zero while it is inside
}

// A process is a child process, as a play sees it.
type process struct {
	scene   *scene
	name    string
	cmd     *exec.Cmd
	stdin   io.Closer
	orders  *json.Encoder
	answers chan report
	ended   chan struct{} // closed when its output is read to the end
	inside  bool          // by its last answer

	mu      sync.Mutex
	quiet   bool // its lines are not printed
	tenures []tenure
}

// start starts a process with a lock on some servers, which are named by their addresses.
func (s *scene) start(name, lock string, addrs ...string) *process {
	return s.startRole(role{Name: name, Lock: lock, Addrs: addrs})
}

func (s *scene) startRole(r role) *process {
	self, err := os.Executable()
	s.must(err)
	p := &process{scene: s, name: r.Name, answers: make(chan report, 8), ended: make(chan struct{})}
	p.cmd = exec.CommandContext(context.WithoutCancel(s.ctx), self, childArg)
	p.cmd.Stderr = os.Stderr
	stdin, errIn := p.cmd.StdinPipe()
	stdout, errOut := p.cmd.StdoutPipe()
	s.must(errors.Join(errIn, errOut))
	if err := p.cmd.Start(); err != nil {
		s.must(fmt.Errorf("starting process %s: %w", r.Name, err))
	}
	p.stdin, p.orders = stdin, json.NewEncoder(stdin)
	s.processes = append(s.processes, p)
	r.Chinese = inChinese
	_ = p.orders.Encode(r) // answer notices the end of a process
	go p.read(json.NewDecoder(stdout))
	p.answer() // it is ready
	return p
}

// hush keeps the lines of the process from the time line from now on.
func (p *process) hush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.quiet = true
}

// read takes the reports of the process down, until it ends.
func (p *process) read(in *json.Decoder) {
	defer close(p.ended)
	for {
		var r report
		if in.Decode(&r) != nil {
			return
		}
		p.take(r)
	}
}

func (p *process) take(r report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Text != "" && !p.quiet {
		p.scene.timeline.add(p.name, r.Text)
	}
	switch r.Kind {
	case reportEnter:
		p.tenures = append(p.tenures, tenure{Name: p.name, From: r.At})
	case reportStop:
		p.endTenure(r.At)
	case reportDone:
		p.answers <- r
	}
}

// endTenure ends the last tenure, unless it has ended. The caller holds p.mu.
func (p *process) endTenure(at time.Time) {
	if n := len(p.tenures); n > 0 && p.tenures[n-1].To.IsZero() {
		p.tenures[n-1].To = at
	}
}

// do gives an order, waits until it is done, and reports whether the process is inside then.
func (p *process) do(order string) (inside bool) {
	p.begin(order)
	return p.answer()
}

// begin gives an order. The play calls answer later.
func (p *process) begin(order string) { _ = p.orders.Encode(order) } // answer notices the end of a process

// answer waits until an order is done, and reports whether the process is inside then.
func (p *process) answer() (inside bool) {
	select {
	case r := <-p.answers:
		if r.Error != "" {
			p.scene.must(fmt.Errorf("process %s: %s", p.name, r.Error))
		}
		p.inside = r.In
		return r.In
	case <-p.ended:
		p.scene.must(fmt.Errorf("process %s ended", p.name))
	case <-p.scene.ctx.Done():
		p.scene.must(nil)
	}
	return false
}

// answered reports whether the order that was begun is done.
func (p *process) answered() bool { return len(p.answers) > 0 }

// isInside reports whether the process got in by the last order that is done.
func (p *process) isInside() bool {
	if p.answered() {
		p.answer()
	}
	return p.inside
}

// kill ends the process as kill -9 does. It works no longer then.
func (p *process) kill() {
	p.scene.must(p.cmd.Process.Kill())
	<-p.ended
	p.scene.say("%s is killed with -9", p.name)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endTenure(time.Now())
}

// signal pauses the process with STOP, or resumes it with CONT. Windows has neither.
func (p *process) signal(name string) {
	p.scene.must(exec.Command("kill", "-"+name, fmt.Sprint(p.cmd.Process.Pid)).Run())
}

// end lets the process end, and kills it if it does not.
func (p *process) end() {
	late := time.AfterFunc(3*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	_ = p.stdin.Close()
	<-p.ended
	_ = p.cmd.Wait() // a process that was killed has no exit code
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endTenure(time.Now())
}

func (p *process) entries() []tenure {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]tenure(nil), p.tenures...)
}
