package top

import (
	"errors"
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/snapshot"
	"github.com/holdfast-go/holdfast/lockinfo"
)

const (
	linesAround = 6   // of the screen: they do not scroll
	jump        = 60  // snapshots of a recording
	maxFilter   = 200 // bytes
)

// handleKey acts on a key. Ctrl-C comes first. A filter that is typed, and an open question, take
// all other keys.
func (m *Model) handleKey(press tea.KeyPressMsg) tea.Cmd {
	name := press.String()
	if name == "ctrl+c" {
		return tea.Quit
	}
	switch m.mode {
	case filtering:
		m.editFilter(name, press.Text)
		return nil
	case asking:
		return m.answer(name)
	}
	m.message = ""
	switch name {
	case "q":
		return tea.Quit
	case "b":
		m.ask()
		return nil
	}
	if m.recording != nil && m.stepRecording(name) {
		return nil
	}
	if m.mode == detailing {
		m.detailKey(name)
		return nil
	}
	return m.listKey(name)
}

// orderOf are the keys that sort.
var orderOf = map[string]snapshot.Order{"o": snapshot.ByAge, "c": snapshot.ByWaiters,
	"w": snapshot.ByWait, "n": snapshot.ByName}

func (m *Model) listKey(name string) tea.Cmd {
	if order, ok := orderOf[name]; ok {
		m.order = order
		m.refreshRows()
		return nil
	}
	switch name {
	case "/":
		m.mode = filtering
	case "esc":
		m.filter = ""
		m.refreshRows()
	case "enter":
		if m.row < len(m.locks) {
			m.mode, m.detail, m.scroll, m.gone = detailing, lockinfo.Info{}, 0, ""
			m.setDetail(m.locks[m.row])
			return m.inspect()
		}
	default:
		m.row = m.moved(name, m.row, len(m.locks)-1)
		if m.row < len(m.locks) {
			m.cursor = m.locks[m.row].Name
		}
	}
	return nil
}

// moved returns the place to which a key moves, from 0 to last.
func (m *Model) moved(key string, place, last int) int {
	page := max(m.height-linesAround, 1)
	switch key {
	case "up", "k":
		place--
	case "down", "j":
		place++
	case "pgup":
		place -= page
	case "pgdown", "space":
		place += page
	case "home", "g":
		place = 0
	case "end", "G":
		place = last
	}
	return max(min(place, last), 0)
}

func (m *Model) detailKey(name string) {
	switch name {
	case "esc", "enter", "backspace":
		m.mode = listing
	case "tab":
		if len(m.detail.Holds) > 0 {
			m.hold = (m.hold + 1) % len(m.detail.Holds)
		}
	default:
		m.scroll = m.moved(name, m.scroll, max(len(m.detailLines())-1, 0))
	}
}

// stepRecording goes to another snapshot of a recording.
func (m *Model) stepRecording(name string) bool {
	at := m.at
	switch name {
	case "left", "h":
		at--
	case "right", "l":
		at++
	case "[":
		at -= jump
	case "]":
		at += jump
	default:
		return false
	}
	at = max(min(at, m.recording.Len()-1), 0)
	if at == m.at {
		return true
	}
	m.at, m.before = at, nil
	if at > 0 { // changes are those since the snapshot before
		m.before = append([]lockinfo.Info{}, m.recording.At(at-1).Locks...)
	}
	m.show(m.recording.At(at))
	return true
}

func (m *Model) editFilter(name, text string) {
	switch name {
	case "enter":
		m.mode = listing
	case "esc":
		m.mode, m.filter = listing, ""
	case "backspace":
		if runes := []rune(m.filter); len(runes) > 0 {
			m.filter = string(runes[:len(runes)-1])
		}
	default:
		if len(m.filter)+len(text) < maxFilter {
			m.filter += text
		}
	}
	m.refreshRows()
}

// refreshRows chooses and sorts the names of the last look. The cursor stays on its name, if that
// is there.
func (m *Model) refreshRows() {
	m.locks = slices.DeleteFunc(slices.Clone(m.now.Locks),
		func(info lockinfo.Info) bool { return !filterMatches(info, m.filter) })
	slices.SortFunc(m.locks, m.order.Compare)
	if i := slices.IndexFunc(m.locks, func(info lockinfo.Info) bool { return info.Name == m.cursor }); i >= 0 {
		m.row = i
	}
	if m.row = max(min(m.row, len(m.locks)-1), 0); m.row < len(m.locks) {
		m.cursor = m.locks[m.row].Name
	}
}

// ask asks whether to break the chosen hold.
func (m *Model) ask() {
	info := m.detail
	if m.mode == listing {
		if m.row >= len(m.locks) {
			return
		}
		info = m.locks[m.row]
	}
	hold, held := info.Holder()
	if m.mode == detailing && held {
		hold = info.Holds[m.hold]
	}
	switch {
	case m.server == nil:
		m.message = "this is a capture: nothing can be broken"
	case !held:
		m.message = "nobody holds " + show.Text(info.Name)
	case m.mode == listing && info.Holders > 1:
		m.message = show.Text(info.Name) + " has several holds: enter shows them, and tab chooses one"
	default:
		m.asked, m.mode = question{info.Name, hold, m.mode}, asking
	}
}

// answer breaks the hold if the answer is yes. The token makes sure that it is the hold that was
// shown.
func (m *Model) answer(name string) tea.Cmd {
	asked := m.asked
	m.mode, m.asked = asked.then, question{}
	if name != "y" && name != "Y" {
		m.message = "nothing was broken"
		return nil
	}
	m.message = fmt.Sprintf("breaking token %d of %s ...", asked.hold.Token, show.Text(asked.name))
	ctx, server := m.ctx, m.server
	return func() tea.Msg {
		err := server.Break(ctx, asked.name, asked.hold.Token)
		return broken{asked, errors.Is(err, holdfast.ErrNotHeld), m.errorText(err)}
	}
}
