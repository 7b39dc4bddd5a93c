package moving

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// A section is what the lock guards. Processes tell it by a line that they enter or leave, and wait
// for its answer. So what it sees lies within what they hold, and two processes that it sees inside
// together are two holders. A process that is killed has left.
//
//	enter WORKER RELEASE TOKEN    the token is 0 without holdfast
//	leave
//	at WORKER MARK                the process is at a moment at which it may be killed
type section struct {
	net.Listener
	handlers sync.WaitGroup

	mu       sync.Mutex
	inside   map[net.Conn]visit
	last     visit
	visits   map[string]int    // by worker
	passed   map[[2]string]int // from a release to the next one inside
	overlaps []string
	smaller  []string // tokens that did not grow
	largest  int64
	trapped  string   // the worker and the mark to be kept
	kept     net.Conn // of the worker that is kept
}

// A visit is a process inside.
type visit struct {
	worker, release string
	token           int64
}

func openSection(t *testing.T) *section {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &section{Listener: listener, inside: map[net.Conn]visit{}, visits: map[string]int{},
		passed: map[[2]string]int{}}
	s.handlers.Go(func() {
		for {
			conn, err := s.Accept()
			if err != nil {
				return
			}
			s.handlers.Go(func() { s.serve(conn) })
		}
	})
	t.Cleanup(func() {
		s.Close()
		s.handlers.Wait() // all processes have ended by now
	})
	return s
}

// serve answers one process until it is gone.
func (s *section) serve(conn net.Conn) {
	defer conn.Close()
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || !s.hear(conn, words) {
			continue
		}
		if _, err := io.WriteString(conn, "ok\n"); err != nil {
			break
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.inside, conn)
}

// hear takes a line, and reports whether to answer it.
func (s *section) hear(conn net.Conn, words []string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case words[0] == "enter" && len(words) == 4:
		token, _ := strconv.ParseInt(words[3], 10, 64)
		s.enter(conn, visit{words[1], words[2], token})
	case words[0] == "at" && len(words) == 3:
		if s.trapped == words[1]+" "+words[2] {
			s.trapped, s.kept = "", conn
			return false
		}
	default:
		delete(s.inside, conn)
	}
	return true
}

func (s *section) enter(conn net.Conn, v visit) {
	for _, other := range s.inside {
		s.overlaps = append(s.overlaps, fmt.Sprintf("%s (%s) beside %s (%s)", v.worker, v.release, other.worker,
			other.release))
	}
	if v.token != 0 && v.token <= s.largest {
		s.smaller = append(s.smaller, fmt.Sprintf("%s (%s): %d after %d", v.worker, v.release, v.token, s.largest))
	}
	s.largest = max(s.largest, v.token)
	s.inside[conn] = v
	s.visits[v.worker]++
	s.passed[[2]string{s.last.release, v.release}]++
	s.last = v
}

// trap keeps a worker at a mark, the next time that it gets there.
func (s *section) trap(worker, mark string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trapped = worker + " " + mark
}

// isTrapped reports whether the worker is kept.
func (s *section) isTrapped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept != nil
}

// release lets the worker go on from its mark.
func (s *section) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = io.WriteString(s.kept, "ok\n")
}

func (s *section) visitsOf(worker string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.visits[worker]
}

func (s *section) total() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range s.visits {
		n += of
	}
	return n
}

func (s *section) overlapped() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.overlaps)
}

// isExclusive fails the test for each two that were inside together, and each token that did not
// grow.
func (s *section) isExclusive(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, text := range s.overlaps {
		t.Error("two inside: ", text)
	}
	for _, text := range s.smaller {
		t.Error("a token that did not grow: ", text)
	}
}

// A desk is a process's connection to the section.
type desk struct {
	worker, release string
	net.Conn
	answers *bufio.Reader
}

func dial(addr, worker, release string) (*desk, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &desk{worker, release, conn, bufio.NewReader(conn)}, nil
}

func (d *desk) enter(token int64) error { return d.say("enter", d.worker, d.release, token) }
func (d *desk) leave() error            { return d.say("leave") }
func (d *desk) at(mark string) error    { return d.say("at", d.worker, mark) }

func (d *desk) say(words ...any) error {
	if _, err := fmt.Fprintln(d, words...); err != nil {
		return err
	}
	_, err := d.answers.ReadString('\n')
	return err
}
