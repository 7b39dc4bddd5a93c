package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A manual is docs/command.md: the table of commands, and the text about each.
type manual struct {
	commands map[string]bool   // of the table
	sections map[string]string // by command; the text above the sections within a section belongs to each
}

func readManual(t *testing.T) manual {
	t.Helper()
	text, err := os.ReadFile("../../docs/command.md")
	if err != nil {
		t.Fatal(err)
	}
	m := manual{map[string]bool{}, map[string]string{}}
	above, names := "", []string(nil)
	for line := range strings.Lines(string(text)) {
		heading, isHeading := strings.CutPrefix(line, "## ")
		if inner, ok := strings.CutPrefix(line, "### holdfast "); ok {
			names = commandsOf(inner)
			for _, name := range names {
				m.sections[name] += above
			}
		} else if isHeading {
			above, names = "", nil
			if list, ok := strings.CutPrefix(heading, "holdfast "); ok {
				names = commandsOf(list)
			}
		}
		if names == nil {
			above += line
		}
		for _, name := range names {
			m.sections[name] += line
		}
		if row, ok := strings.CutPrefix(line, "| `holdfast "); ok {
			for _, name := range tableCommands(row) {
				m.commands[name] = true
			}
		}
	}
	return m
}

// commandsOf reads a heading: a command, or several.
func commandsOf(list string) []string {
	return strings.Split(strings.ReplaceAll(strings.TrimSpace(list), " and ", ", "), ", ")
}

// tableCommands reads the first cell of a row: `holdfast renew`, `release`, or alternatives.
func tableCommands(row string) (names []string) {
	cell, _, _ := strings.Cut(strings.ReplaceAll(row, `\|`, "/"), "|")
	for i, part := range strings.Split(strings.ReplaceAll(cell, "`", ""), ", ") {
		var words []string
		for _, word := range strings.Fields(strings.TrimPrefix(part, "holdfast ")) {
			if word == "--" || strings.ToLower(word) != word || strings.HasPrefix(word, "[") {
				break
			}
			words = append(words, word)
		}
		if len(words) == 0 || i > 0 && strings.HasPrefix(words[0], "--") {
			continue
		}
		last := words[len(words)-1]
		if len(words) == 1 || !strings.Contains(last, "/") {
			names = append(names, strings.Join(words, " "))
			continue
		}
		for _, one := range strings.Split(last, "/") {
			names = append(names, strings.Join(append(slices.Clone(words[:len(words)-1]), one), " "))
		}
	}
	return names
}

var flagInCell = regexp.MustCompile("`(--[a-z-]+)[ `=\\[]")

// ofConnection reports whether a flag is one of the connection.
func ofConnection(name string) bool {
	connected := &cobra.Command{}
	new(cli.Connection).AddFlags(connected)
	return connected.Flags().Lookup(name) != nil
}

// Every command is in the table of docs/command.md, and every flag of it in its section. Nothing
// else is.
func TestManualHasEveryCommandAndFlag(t *testing.T) {
	m, root := readManual(t), newRoot()
	flags, all := map[string]map[string]bool{}, map[string]bool{}
	for _, cmd := range allCommands(root) {
		if cmd.Hidden && cmd.Name() != "man" || cmd.HasSubCommands() || cmd.Name() == "help" || !cmd.Runnable() {
			continue
		}
		name := strings.TrimPrefix(cmd.CommandPath(), "holdfast ")
		short := strings.Fields(name)
		section, ok := m.sections[name]
		if !ok {
			section = m.sections[short[0]]
		}
		if !m.commands[name] && !slices.ContainsFunc([]string{"bash", "zsh"},
			func(shell string) bool { return m.commands[name+" "+shell] }) {
			t.Errorf("the table has no row for holdfast %s", name)
		}
		if flags[short[0]] == nil {
			flags[short[0]] = map[string]bool{}
		}
		cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			flags[short[0]]["--"+flag.Name], all["--"+flag.Name] = true, true
			if flag.Name == "help" || ofConnection(flag.Name) && name != "run" {
				return
			}
			if !regexp.MustCompile("`--" + flag.Name + "[ `=\\[]").MatchString(section) {
				t.Errorf("the section of holdfast %s does not have --%s", name, flag.Name)
			}
			if flag.Shorthand != "" && !strings.Contains(section, "`-"+flag.Shorthand+"`") &&
				!strings.Contains(section, "`-"+flag.Shorthand+" ") {
				t.Errorf("the section of holdfast %s does not have -%s", name, flag.Shorthand)
			}
		})
	}
	for name := range m.commands {
		if cmd, rest, err := root.Find(strings.Fields(name)); err != nil || cmd == root || len(rest) > 0 &&
			!slices.Contains(cmd.ValidArgs, rest[0]) && cmd.Name() != "help" {
			t.Errorf("the table has holdfast %s, which is no command", name)
		}
	}
	for name, section := range m.sections {
		own := flags[strings.Fields(name)[0]]
		if own == nil {
			t.Errorf("there is a section for holdfast %s, which is no command", name)
			continue
		}
		for other, text := range m.sections {
			if other != name && text == section { // several commands share it
				own = all
			}
		}
		for _, flag := range flagsInTables(section) {
			if !own[flag] {
				t.Errorf("the section of holdfast %s has %s, which is no flag of it", name, flag)
			}
		}
	}
}

// flagsInTables are the flags in the first cells of rows.
func flagsInTables(section string) (flags []string) {
	for line := range strings.Lines(section) {
		if cells := strings.Split(strings.ReplaceAll(line, `\|`, "/"), "|"); strings.HasPrefix(line, "|") && len(cells) > 1 {
			for _, found := range flagInCell.FindAllStringSubmatch(cells[1], -1) {
				flags = append(flags, found[1])
			}
		}
	}
	return flags
}
