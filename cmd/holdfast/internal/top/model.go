package top

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/snapshot"
	"github.com/holdfast-go/holdfast/lockinfo"
)

const (
	lookEvery = time.Second
	kept      = 1000 // names of a look
)

// A mode says what the keys do.
type mode int

const (
	listing   mode = iota // the list of names
	detailing             // one name
	filtering             // a filter is typed
	asking                // whether to break a hold
)

// A question is about breaking a hold.
type question struct {
	name string
	hold lockinfo.Hold
	then mode // after the answer
}

// A Model is all that the screen shows.
type Model struct {
	ctx       context.Context
	server    Server    // nil: there is a recording
	recording Recording // nil: there is a server
	recorder  Recorder  // nil: nothing is stored, or not any more
	title     string
	wrong     func(error) string // an error in words

	width, height int
	mode          mode
	order         snapshot.Order
	filter        string

	now     snapshot.Snapshot
	before  []lockinfo.Info                             // the names of the look before; nil before the second
	changes map[string]string                           // marks of names that changed since
	locks   []lockinfo.Info                             // of now: those that the filter chooses, in order
	waits   func(string, lockinfo.Hold) []lockinfo.Wait // of now
	at      int                                         // in the recording
	away    string                                      // why the last look failed
	since   time.Time                                   // away since

	cursor string // the chosen name
	row    int    // where it is, or was
	top    int    // the first row that is shown

	detail lockinfo.Info  // of detailing
	why    lockinfo.Chain // it is waited for, as far as the names in now tell
	gone   string         // why the detail could not be read
	hold   int            // the chosen hold
	scroll int            // the first line of the detail that is shown

	asked   question
	message string // what became of the last action
}

// A Config says what a Model shows. It has a Server or a Recording.
type Config struct {
	Server    Server
	Recording Recording
	Recorder  Recorder
	Title     string
	Wrong     func(error) string
	Cut       bool              // the recording was not ended
	First     snapshot.Snapshot // the first look at the server
}

// New makes a Model. ctx ends the looks.
func New(ctx context.Context, c Config) *Model {
	m := &Model{ctx: ctx, server: c.Server, recording: c.Recording, recorder: c.Recorder, title: c.Title,
		wrong: c.Wrong, order: snapshot.ByAge, width: 80, height: 24}
	if m.recording != nil {
		m.show(m.recording.At(0))
		if c.Cut {
			m.message = "the last snapshot is not complete, and is left out"
		}
		return m
	}
	m.record(c.First)
	m.show(c.First)
	return m
}

// Look looks once at a server.
func Look(ctx context.Context, server Server, compare snapshot.Compare) (snapshot.Snapshot, error) {
	return snapshot.Take(server.List(ctx, holdfast.ListOptions{}), compare, kept)
}

// The messages of a Model.
type (
	snapshotMessage struct {
		snapshot.Snapshot
		wrong string
	}
	detailMessage struct {
		lockinfo.Info
		wrong string
	}
	broken struct {
		question
		not   bool // there is no such hold any more
		wrong string
	}
	pollMessage struct{}
)

// errorText says in words what is wrong, and nothing of nil. That may take a moment, so that only
// commands of bubbletea call it.
func (m *Model) errorText(err error) string {
	if err == nil {
		return ""
	}
	return m.wrong(err)
}

// Init implements tea.Model.
func (m *Model) Init() tea.Cmd {
	if m.server == nil {
		return nil
	}
	return m.pollLater(0)
}

// pollLater looks again, a second after the last look began.
func (m *Model) pollLater(took time.Duration) tea.Cmd {
	return tea.Tick(max(lookEvery-took, lookEvery/10), func(time.Time) tea.Msg { return pollMessage{} })
}

// poll asks for all names. The names that the filter chooses come first, so that they are kept.
func (m *Model) poll() tea.Cmd {
	ctx, server, order, filter := m.ctx, m.server, m.order, m.filter
	return func() tea.Msg {
		s, err := Look(ctx, server, func(a, b lockinfo.Info) int {
			if x, y := filterMatches(a, filter), filterMatches(b, filter); x != y {
				if x {
					return -1
				}
				return 1
			}
			return order.Compare(a, b)
		})
		return snapshotMessage{s, m.errorText(err)}
	}
}

// inspect asks for the name of the detail.
func (m *Model) inspect() tea.Cmd {
	if m.server == nil || m.mode != detailing && m.asked.then != detailing {
		return nil
	}
	ctx, server, name := m.ctx, m.server, m.detail.Name
	return func() tea.Msg {
		info, err := server.Inspect(ctx, name)
		info.Name = name
		return detailMessage{info, m.errorText(err)}
	}
}

// Update implements tea.Model.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		return m, m.handleKey(msg)
	case pollMessage:
		return m, tea.Batch(m.poll(), m.inspect())
	case snapshotMessage:
		m.takeSnapshot(msg)
		return m, m.pollLater(msg.Took)
	case detailMessage:
		if msg.Name == m.detail.Name {
			if m.gone = msg.wrong; msg.wrong == "" {
				m.setDetail(msg.Info)
			}
		}
	case broken:
		m.message = m.breakOutcome(msg)
		return m, m.inspect()
	}
	return m, nil
}

// takeSnapshot takes a look. After a failure the last good one stays on the screen.
func (m *Model) takeSnapshot(l snapshotMessage) {
	if l.wrong != "" {
		if m.away == "" {
			m.since = l.At
		}
		m.away = l.wrong
		m.record(snapshot.Snapshot{At: l.At, Err: errors.New(l.wrong)})
		return
	}
	m.away = ""
	m.record(l.Snapshot)
	m.show(l.Snapshot)
}

// record stores a look, until that fails.
func (m *Model) record(s snapshot.Snapshot) {
	if m.recorder == nil {
		return
	}
	if err := m.recorder.Add(s); err != nil {
		m.recorder = nil
		m.message = "nothing is captured any more: " + show.Lines(err.Error())
	}
}

// show takes what a look saw.
func (m *Model) show(s snapshot.Snapshot) {
	m.changes = map[string]string{}
	if m.before != nil {
		for _, c := range lockinfo.Changes(m.before, s.Locks) {
			switch {
			case c.Before.Name == "":
				m.changes[c.After.Name] = "+"
			case c.Event == lockinfo.EventHeld || c.Event == lockinfo.EventEnded:
				m.changes[c.After.Name] = "*"
			}
		}
	}
	m.now, m.before, m.waits = s, append([]lockinfo.Info{}, s.Locks...), lockinfo.Waits(s.Locks)
	m.refreshRows()
	if m.server == nil {
		for _, info := range s.Locks {
			if info.Name == m.detail.Name {
				m.setDetail(info)
				return
			}
		}
		m.setDetail(lockinfo.Info{Name: m.detail.Name, At: s.At})
	}
}

// setDetail takes what is known of the name of the detail. The chosen hold stays the same one, as
// long as it is there.
func (m *Model) setDetail(info lockinfo.Info) {
	var token int64
	if m.hold < len(m.detail.Holds) {
		token = m.detail.Holds[m.hold].Token
	}
	m.detail, m.hold, m.why = info, 0, lockinfo.NewChain(info, m.now.Locks)
	for i, h := range info.Holds {
		if h.Token == token {
			m.hold = i
		}
	}
}

func (m *Model) breakOutcome(b broken) string {
	hold := fmt.Sprintf("token %d of %s", b.hold.Token, show.Text(b.name))
	switch {
	case b.not:
		return "nothing was broken: " + hold + " is not held any more"
	case b.wrong != "":
		return "not known to be broken: " + hold + ": " + b.wrong
	}
	return "broken: " + hold + "; others get in when its holder has stopped"
}

// filterMatches reports whether a filter chooses a name: by a part of the name or of a holder's
// label.
func filterMatches(info lockinfo.Info, filter string) bool {
	return filter == "" || contains(info.Name, filter) ||
		slices.ContainsFunc(info.Holds, func(h lockinfo.Hold) bool { return contains(h.Label, filter) })
}

func contains(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}
