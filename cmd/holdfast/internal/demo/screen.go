package demo

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/show"
)

// A screen is all that a terminal shows.
type screen struct {
	State
	config        Config
	server        string
	quit          func()
	width, height int
	story         string
}

// RunOnScreen is Run on a terminal. In the end, it gives the terminal back and prints all that
// happened as lines of text. left is the cause of the end if the user leaves.
func RunOnScreen(ctx context.Context, c Config, in, out *os.File, server string, left error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := &screen{config: c, server: server, quit: func() { cancel(left) }}
	program := tea.NewProgram(s, tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler())
	var shown sync.WaitGroup
	shown.Go(func() {
		if _, err := program.Run(); err != nil {
			s.quit() // the lottery must not go on unseen
		}
	})
	c.View = func(state State) { program.Send(state) }
	err := Run(ctx, c)
	program.Quit()
	shown.Wait()
	fmt.Fprint(out, s.story)
	return err
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
		return s, s.Init()
	case State:
		s.State = msg
		s.story += msg.Text
	}
	return s, nil
}

var styles = map[string]show.Style{"HOLDS": show.Good, "HOLDS on and on": show.Warning,
	"believes it holds": show.Warning, "killed": show.Bad, "stopped": show.Bad, "had its turn": show.Faint}

// View implements tea.Model. It shows the newest lines that fit.
func (s *screen) View() tea.View {
	holder, bar := s.lease()
	lines := []string{
		"The noon lottery on " + s.server,
		fmt.Sprintf("round %d of %d  %s", s.Round, s.config.Rounds, strings.Join(s.Marks, "")),
		show.Faint.Styled("✓ drawn   ! refused   holder: S stopped   M held too long   K killed"), "", holder, bar, "",
	}
	columns := max(s.width/24, 1)
	grid := make([]string, (len(s.Doing)+columns-1)/columns)
	for i, doing := range s.Doing {
		grid[i%len(grid)] += styles[doing].Styled(fmt.Sprintf("%2d %-20s ", i+1, doing))
	}
	lines = append(append(lines, grid...), "")
	story := strings.Split(ansi.Wordwrap(strings.TrimSpace(s.story), s.width, ""), "\n")
	room := min(max(s.height-len(lines)-1, 0), len(story))
	lines = append(append(lines, story[len(story)-room:]...), show.Faint.Styled("ctrl-c or q leaves"))
	lines = lines[max(len(lines)-s.height, 0):]
	for i, line := range lines {
		lines[i] = ansi.Truncate(line, s.width, "…")
	}
	return tea.View{Content: strings.Join(lines, "\n"), AltScreen: true}
}

// lease says who holds, and draws a bar of what is left of the lease.
func (s *screen) lease() (holder, bar string) {
	switch {
	case s.config.NoLock:
		return show.Warning.Styled("there is no lock"), ""
	case s.Holder == 0:
		return show.Faint.Styled("nobody holds the lock"), ""
	}
	holder = show.Good.Styled(fmt.Sprintf("worker %d holds the lock, token %s", s.Holder, s.Token))
	if doing := s.Doing[s.Holder-1]; doing == "killed" || doing == "stopped" {
		holder = show.Bad.Styled(fmt.Sprintf("worker %d is %s; its lease is not over yet", s.Holder, doing))
	}
	left, width, style := max(time.Until(s.Until), 0), max(min(s.width-30, 100), 10), show.Good
	if left < s.Lasts/3 {
		style = show.Bad
	}
	full := min(int(float64(width)*left.Seconds()/s.Lasts.Seconds()), width)
	return holder, style.Styled(strings.Repeat("█", full)) + strings.Repeat("░", width-full) +
		fmt.Sprintf(" %.1f s of %v", left.Seconds(), s.Lasts)
}
