// Package board shows the lottery live on a terminal: who holds the lock, with which token and for how long still, who
// waits, and what has happened. It fits 80 columns and 24 lines, and uses what there is beyond.
package board

import (
	"os"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/lottery"
)

// Facts are what is known before the lottery begins.
type Facts struct {
	Rounds  int
	Server  string
	TTL     time.Duration
	Workers int
}

// A Board is on the terminal from Open until Close.
type Board struct {
	program *tea.Program
	done    chan struct{}

	mu    sync.Mutex
	story strings.Builder
	plain lottery.View
}

// Open takes the terminal over. quit is called when somebody asks to leave.
func Open(in, out *os.File, facts Facts, quit func()) *Board {
	b := &Board{done: make(chan struct{})}
	b.plain = lottery.Plain(&b.story)
	b.program = tea.NewProgram(newModel(facts, quit), tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler())
	go func() {
		defer close(b.done)
		if _, err := b.program.Run(); err != nil {
			quit() // no terminal after all: do not go on unseen
		}
	}()
	return b
}

// View is a lottery.View.
func (b *Board) View(e lottery.Event) {
	b.mu.Lock()
	before := b.story.Len()
	b.plain(e)
	told := b.story.String()[before:]
	b.mu.Unlock()
	b.program.Send(happened{e, told})
}

// Close gives the terminal back.
func (b *Board) Close() {
	b.program.Quit()
	<-b.done
}

// Story is what happened, as lines of text.
func (b *Board) Story() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.story.String()
}
