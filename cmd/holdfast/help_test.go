package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/spf13/cobra"
)

// Help without a terminal fits into 80 columns.
func TestHelpFits(t *testing.T) {
	root := newRoot()
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		var out strings.Builder
		cmd.SetOut(&out)
		_ = cmd.Help()
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > cli.PlainWidth {
				t.Errorf("%s: %d columns: %s", cmd.CommandPath(), n, line)
			}
		}
		for _, c := range cmd.Commands() {
			visit(c)
		}
	}
	visit(root)
}
