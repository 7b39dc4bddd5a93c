package board

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/lottery"
)

// frame is how often the bar moves.
const frame = 50 * time.Millisecond

// happened is an event, and the lines of text that tell it, if any do.
type happened struct {
	lottery.Event
	told string
}

type tick time.Time

// A model is all that is shown.
type model struct {
	facts  Facts
	quit   func()
	width  int
	height int
	now    time.Time

	round   int
	marks   []string // a sign for each round
	workers []string // what each does; the first is number 1
	holder  int      // 0: nobody
	token   int64
	until   time.Time
	told    []string
}

// What a worker does.
const (
	idle    = "ready"
	waits   = "waits"
	holds   = "HOLDS"
	dawdles = "HOLDS on and on"
	turned  = "had its turn"
	killed  = "killed"
	stopped = "stopped"
)

func newModel(facts Facts, quit func()) *model {
	m := &model{facts: facts, quit: quit, width: 80, height: 24, now: time.Now()}
	for range facts.Workers {
		m.workers = append(m.workers, idle)
	}
	for range facts.Rounds {
		m.marks = append(m.marks, "·")
	}
	return m
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd { return next() }

func next() tea.Cmd { return tea.Tick(frame, func(t time.Time) tea.Msg { return tick(t) }) }

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		if key := msg.String(); key == "ctrl+c" || key == "q" {
			m.quit()
		}
	case tick:
		m.now = time.Now()
		return m, next()
	case happened:
		m.note(msg)
	}
	return m, nil
}

// note takes an event down.
func (m *model) note(e happened) {
	for line := range strings.Lines(e.told) {
		if line = strings.TrimRight(line, "\n"); line != "" {
			m.told = append(m.told, line)
		}
	}
	switch e.Kind {
	case lottery.Opened:
		m.round, m.holder = e.Round, 0
		for i, does := range m.workers {
			if does != killed {
				m.workers[i] = waits
			}
		}
	case lottery.Holds:
		m.holder, m.token, m.until = e.Worker, e.Token, e.Until
		m.does(e.Worker, holds)
	case lottery.Entered: // without the lock
		m.does(e.Worker, holds)
	case lottery.Renewed:
		if m.holder == e.Worker {
			m.until = e.Until
		}
	case lottery.Left:
		m.free(e.Worker)
	case lottery.Done:
		m.does(e.Worker, turned)
	case lottery.Dawdles:
		m.does(e.Worker, dawdles)
		m.mark("M")
	case lottery.Stopped, lottery.Continued:
		m.does(e.Worker, map[lottery.Kind]string{lottery.Stopped: stopped, lottery.Continued: "goes on, too late"}[e.Kind])
		m.mark("S")
	case lottery.Killed:
		m.does(e.Worker, killed)
		m.mark("K")
	case lottery.Drawn:
		if m.marks[m.round-1] == "·" {
			m.mark("✓")
		}
	case lottery.Lost:
		m.free(e.Worker)
		m.does(e.Worker, "lost its lease")
	case lottery.Late:
		m.does(e.Worker, "refused: too late")
	case lottery.Problem, lottery.Refused:
		m.mark("!")
	}
}

func (m *model) does(worker int, what string) {
	if worker >= 1 && worker <= len(m.workers) {
		m.workers[worker-1] = what
	}
}

func (m *model) mark(sign string) {
	if m.round >= 1 && m.round <= len(m.marks) {
		m.marks[m.round-1] = sign
	}
}

func (m *model) free(worker int) {
	if m.holder == worker {
		m.holder = 0
	}
}
