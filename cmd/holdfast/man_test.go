package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Each command has a page with what its help has, in the sections of man. Where mandoc is here, it
// finds nothing to warn of.
func TestPagesOfMan(t *testing.T) {
	dir := t.TempDir()
	if err := writePages(newRoot(), dir, "2026-11-26"); err != nil {
		t.Fatal(err)
	}
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		text, err := os.ReadFile(filepath.Join(dir, pageName(cmd)+".1"))
		if err != nil {
			t.Fatal(err)
		}
		for section, want := range map[string]bool{
			"NAME": true, "SYNOPSIS": true, "DESCRIPTION": true, "OPTIONS": true, "ENVIRONMENT": true,
			"COMMANDS": len(shownCommands(cmd)) > 0, "EXIT STATUS": strings.Contains(cmd.Long, "Exit codes: "),
			"EXAMPLES": cmd.Example != "", "SEE ALSO": cmd.HasParent(),
		} {
			if got := strings.Count(string(text), ".SH "+section+"\n"); got > 1 || got == 1 != want {
				t.Errorf("%s has %d sections %s", pageName(cmd), got, section)
			}
		}
		for _, c := range shownCommands(cmd) {
			check(c)
		}
	}
	check(newRoot())
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || len(pages) < 20 {
		t.Fatal(pages, err)
	}
	if mandoc, err := exec.LookPath("mandoc"); err == nil {
		args := append([]string{"-T", "lint", "-W", "warning"}, pages...)
		if out, err := exec.Command(mandoc, args...).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
}
