package demo

import (
	"fmt"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// A screen is all that a terminal shows.
type screen struct {
	State
	config        Config
	server        string
	quit          func()
	width, height int
	now           time.Time
	text          string
}

// Screen takes a terminal over and shows states on it. quit is called when the user wants to leave.
// leave gives the terminal back, and returns all that happened as lines of text.
func Screen(in, out *os.File, c Config, server string, quit func()) (show func(State), leave func() string) {
	s := &screen{config: c, server: server, quit: quit}
	program := tea.NewProgram(s, tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler())
	left := make(chan struct{})
	go func() {
		defer close(left)
		if _, err := program.Run(); err != nil {
			quit() // the lottery must not go on unseen
		}
	}()
	return func(state State) { program.Send(state) }, func() string { program.Quit(); <-left; return s.text }
}

// Init implements tea.Model: the bar moves 20 times a second.
func (s *screen) Init() tea.Cmd {
	return tea.Tick(50*time.Millisecond, func(t time.Time) tea.Msg { return t })
}

// Update implements tea.Model.
func (s *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		if key := msg.String(); key == "ctrl+c" || key == "q" {
			s.quit()
		}
	case time.Time:
		s.now = msg
		return s, s.Init()
	case State:
		s.State = msg
		s.text += msg.Text
	}
	return s, nil
}

var (
	faint, green = ansi.NewStyle().Faint(), ansi.NewStyle().ForegroundColor(ansi.Green)
	red, yellow  = ansi.NewStyle().ForegroundColor(ansi.Red), ansi.NewStyle().ForegroundColor(ansi.Yellow)
	styles       = map[string]ansi.Style{"HOLDS": green, "HOLDS on and on": yellow, "believes it holds": yellow,
		"killed": red, "stopped": red, "had its turn": faint}
)

// View implements tea.Model. It shows the newest lines that fit.
func (s *screen) View() tea.View {
	holder, bar := s.lease()
	lines := []string{
		"The noon lottery on " + s.server,
		fmt.Sprintf("round %d of %d  %s", s.Round, s.config.Rounds, strings.Join(s.Marks, "")),
		faint.Styled("✓ drawn   ! refused   holder: S stopped   M held too long   K killed"), "", holder, bar, "",
	}
	columns := max(s.width/24, 1)
	grid := make([]string, (len(s.Doing)+columns-1)/columns)
	for i, doing := range s.Doing {
		grid[i%len(grid)] += styles[doing].Styled(fmt.Sprintf("%2d %-20.20s ", i+1, doing))
	}
	lines = append(append(lines, grid...), "")
	story := strings.Split(ansi.Wordwrap(strings.TrimSpace(s.text), s.width, ""), "\n")
	room := min(max(s.height-len(lines)-1, 0), len(story))
	lines = append(append(lines, story[len(story)-room:]...), faint.Styled("ctrl-c or q leaves"))
	lines = lines[max(len(lines)-s.height, 0):]
	for i, line := range lines {
		lines[i] = ansi.Truncate(line, s.width, "…")
	}
	v := tea.NewView(strings.Join(lines, "\n"))
	v.AltScreen = true
	return v
}

// lease says who holds, and draws a bar of what is left of the lease.
func (s *screen) lease() (holder, bar string) {
	if s.config.NoLock {
		return yellow.Styled("there is no lock"), ""
	}
	if s.Holder == 0 {
		return faint.Styled("nobody holds the lock"), ""
	}
	holder = green.Styled(fmt.Sprintf("worker %d holds the lock, token %s", s.Holder, s.Token))
	if doing := s.Doing[s.Holder-1]; doing == "killed" || doing == "stopped" {
		holder = red.Styled(fmt.Sprintf("worker %d is %s; its lease is not over yet", s.Holder, doing))
	}
	left, width, style := max(s.Until.Sub(s.now), 0), max(min(s.width-30, 100), 10), green
	if left < s.config.TTL/3 {
		style = red
	}
	full := min(int(int64(width)*int64(left)/int64(s.config.TTL)), width)
	return holder, style.Styled(strings.Repeat("█", full)) + strings.Repeat("░", width-full) +
		fmt.Sprintf(" %.1f s of %v", left.Seconds(), s.config.TTL)
}
