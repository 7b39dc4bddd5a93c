package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
)

// A manual is docs/command.md: the table of commands, and the text about each.
type manual struct {
	commands map[string]bool   // of the table
	sections map[string]string // by command; what stands above the "###" of a section is repeated in each of them
}

func readManual(t *testing.T) manual {
	t.Helper()
	text, err := os.ReadFile("../../docs/command.md")
	fatal.If(t, err)
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

// tableCommands returns the commands that the first cell of a row names: "holdfast renew, release"
// is two, "history ls/show" is two. Flags and arguments do not count.
func tableCommands(row string) (names []string) {
	cell, _, _ := strings.Cut(strings.ReplaceAll(row, `\|`, "/"), "|")
	for i, part := range strings.Split(strings.ReplaceAll(cell, "`", ""), ", ") {
		var words []string
		for word := range strings.FieldsSeq(strings.TrimPrefix(part, "holdfast ")) {
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
		for one := range strings.SplitSeq(last, "/") {
			names = append(names, strings.Join(append(slices.Clone(words[:len(words)-1]), one), " "))
		}
	}
	return names
}

var flagInCell = regexp.MustCompile("`(--[a-z-]+)[ `=\\[]")

// connectionFlags are the flags with which a command finds the server. The page has them at run.
var connectionFlags = func() *pflag.FlagSet {
	connected := &cobra.Command{}
	new(cli.Connection).AddFlags(connected)
	return connected.Flags()
}()

// documentedCommands returns the commands that have a row and a section, by name. man is hidden,
// and has both. A command with others below it only leads to them.
func documentedCommands() map[string]*cobra.Command {
	commands := map[string]*cobra.Command{}
	for _, cmd := range allCommands(newRoot()) {
		if cmd.Runnable() && !cmd.HasSubCommands() && cmd.Name() != "help" && (!cmd.Hidden || cmd.Name() == "man") {
			commands[strings.TrimPrefix(cmd.CommandPath(), "holdfast ")] = cmd
		}
	}
	return commands
}

// topOf returns the first word of a command's name: history, of "history ls".
func topOf(name string) string {
	top, _, _ := strings.Cut(name, " ")
	return top
}

func TestManualTableHasEveryCommand(t *testing.T) {
	m := readManual(t)
	for name := range documentedCommands() {
		// A row has completion for one shell after the other.
		if !m.commands[name] && !m.commands[name+" bash"] && !m.commands[name+" zsh"] {
			t.Errorf("the table has no row for holdfast %s", name)
		}
	}
}

// The section of a command, or of the command above it, has every flag.
func TestManualSectionHasEveryFlag(t *testing.T) {
	m := readManual(t)
	for name, cmd := range documentedCommands() {
		section, ok := m.sections[name]
		if !ok {
			section = m.sections[topOf(name)]
		}
		cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			if flag.Name == "help" || connectionFlags.Lookup(flag.Name) != nil && name != "run" {
				return
			}
			if !hasFlag(section, "--"+flag.Name) {
				t.Errorf("the section of holdfast %s does not have --%s", name, flag.Name)
			}
			if flag.Shorthand != "" && !hasFlag(section, "-"+flag.Shorthand) {
				t.Errorf("the section of holdfast %s does not have -%s", name, flag.Shorthand)
			}
		})
	}
}

func hasFlag(section, flag string) bool {
	return slices.ContainsFunc([]string{"`", " ", "=", "["}, func(next string) bool {
		return strings.Contains(section, "`"+flag+next)
	})
}

// No row and no section is of another command, and no section has a flag that its command has not.
func TestManualHasNothingElse(t *testing.T) {
	m, root := readManual(t), newRoot()
	for name := range m.commands {
		if !isCommand(root, name) {
			t.Errorf("the table has holdfast %s, which is no command", name)
		}
	}
	flags, all := map[string]map[string]bool{}, map[string]bool{} // by the first word of the command
	for name, cmd := range documentedCommands() {
		top := topOf(name)
		if flags[top] == nil {
			flags[top] = map[string]bool{}
		}
		cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) { flags[top]["--"+flag.Name], all["--"+flag.Name] = true, true })
	}
	for name, section := range m.sections {
		allowed := flags[topOf(name)]
		if allowed == nil {
			t.Errorf("there is a section for holdfast %s, which is no command", name)
			continue
		}
		for other, text := range m.sections {
			if other != name && text == section { // several commands share it
				allowed = all
			}
		}
		for _, flag := range flagsInTables(section) {
			if !allowed[flag] {
				t.Errorf("the section of holdfast %s has %s, which is no flag of it", name, flag)
			}
		}
	}
}

// isCommand reports whether a name is that of a command, or of one with an argument that it takes.
func isCommand(root *cobra.Command, name string) bool {
	cmd, rest, err := root.Find(strings.Fields(name))
	return err == nil && cmd != root && (len(rest) == 0 || slices.Contains(cmd.ValidArgs, rest[0]) || cmd.Name() == "help")
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
