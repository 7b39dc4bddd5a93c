package steps

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
	Every time.Duration // between two tries of a naive lock that waits
	TTL   time.Duration // of its holds; 0: ttl
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
	Token int64  // of an entry; 0: the lock has none
	Error string // the process cannot go on
}

// The kinds of reports.
const (
	reportLine    = "line"    // something for the time line
	reportEntered = "entered" // the process is inside from At on
	reportStopped = "stopped" // it worked for the last time at At
	reportAnswer  = "answer"  // an order is done
)

// A tenure is the time that a process was inside its lock.
type tenure struct {
	Name     string
	From, To time.Time // To is zero while it is inside
	Token    int64
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

	mu      sync.Mutex
	quiet   bool // its lines are not printed
	tenures []tenure
}

// process starts a process with a role.
func (s *scene) process(r role) *process {
	p := &process{scene: s, name: r.Name, answers: make(chan report, 8), ended: make(chan struct{})}
	if !s.ok() {
		close(p.ended)
		return p
	}
	command := s.config.Command
	p.cmd = exec.CommandContext(context.WithoutCancel(s.ctx), command[0], command[1:]...)
	p.cmd.Stderr = s.config.Stderr
	stdin, errIn := p.cmd.StdinPipe()
	stdout, errOut := p.cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut); err != nil {
		s.fail(err)
		close(p.ended)
		return p
	}
	if err := p.cmd.Start(); err != nil {
		s.fail(fmt.Errorf("starting process %s: %w", r.Name, err))
		close(p.ended)
		return p
	}
	p.stdin, p.orders = stdin, json.NewEncoder(stdin)
	s.processes = append(s.processes, p)
	_ = p.orders.Encode(r) // the end of a process is noticed
	go p.read(json.NewDecoder(stdout))
	p.answer() // it is ready
	return p
}

// start starts a process with a lock on one server.
func (s *scene) start(name, lock string, server *node) *process {
	return s.process(role{Name: name, Lock: lock, Addrs: []string{server.addr}, Every: pollEvery})
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
	switch r.Kind {
	case reportEntered:
		p.tenures = append(p.tenures, tenure{Name: p.name, From: r.At, Token: r.Token})
	case reportStopped:
		if n := len(p.tenures); n > 0 && p.tenures[n-1].To.IsZero() {
			p.tenures[n-1].To = r.At
		}
	case reportAnswer:
		if r.Error != "" {
			p.scene.fail(fmt.Errorf("process %s: %s", p.name, r.Error))
		}
	}
	if r.Text != "" && !p.quiet {
		p.scene.timeline.add(r.At, p.name, r.Text)
	}
	if r.Kind == reportAnswer {
		p.answers <- r
	}
}

// do gives an order, waits until it is done, and reports whether the process is inside then.
func (p *process) do(order string) (inside bool) {
	p.begin(order)
	return p.answer()
}

// begin gives an order. The play calls answer later.
func (p *process) begin(order string) {
	if p.scene.ok() {
		_ = p.orders.Encode(order) // the end of a process is noticed by answer
	}
}

// answer waits until an order is done, and reports whether the process is inside then.
func (p *process) answer() (inside bool) {
	if !p.scene.ok() {
		return false
	}
	select {
	case r := <-p.answers:
		return r.In
	case <-p.ended:
		p.scene.fail(fmt.Errorf("process %s ended", p.name))
	case <-p.scene.ctx.Done():
	}
	return false
}

// answered reports whether the order that was begun is done.
func (p *process) answered() bool { return len(p.answers) > 0 }

// kill ends the process as kill -9 does. It works no longer then.
func (p *process) kill() {
	if !p.scene.ok() {
		return
	}
	if err := p.cmd.Process.Kill(); err != nil {
		p.scene.fail(fmt.Errorf("killing process %s: %w", p.name, err))
		return
	}
	<-p.ended
	p.scene.say("%s is killed with -9", p.name)
	p.close(time.Now())
}

// signal pauses the process, or resumes it.
func (p *process) signal(s os.Signal) {
	if !p.scene.ok() {
		return
	}
	if err := p.cmd.Process.Signal(s); err != nil {
		p.scene.fail(fmt.Errorf("signal to process %s: %w", p.name, err))
	}
}

// close ends the tenure of a process that does not report its end.
func (p *process) close(at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.tenures); n > 0 && p.tenures[n-1].To.IsZero() {
		p.tenures[n-1].To = at
	}
}

// end lets the process end, and kills it if it does not.
func (p *process) end() {
	late := time.AfterFunc(3*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	_ = p.stdin.Close()
	<-p.ended
	_ = p.cmd.Wait() // a process that was killed has no exit code
	p.close(time.Now())
}

// held returns the tenures of the process so far.
func (p *process) held() []tenure {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]tenure(nil), p.tenures...)
}
