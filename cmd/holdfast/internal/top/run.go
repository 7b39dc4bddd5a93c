package top

import (
	"context"
	"os"

	tea "charm.land/bubbletea/v2"
)

// Run shows a Model on a terminal until the user leaves, or ctx ends.
func Run(ctx context.Context, c Config, in, out *os.File) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends a look that is under way
	program := tea.NewProgram(New(ctx, c), tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler())
	stop := context.AfterFunc(ctx, program.Quit)
	defer stop()
	_, err := program.Run()
	return err
}
