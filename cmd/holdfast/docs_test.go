package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
)

// A manual is docs/command.md: the table of commands, and the text about each.
type manual struct {
	commands map[string]bool   // of the table
	sections map[string]string // by command; the text above the sections within a section belongs to each
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

// tableCommands reads the first cell of a row: `holdfast renew`, `release`, or alternatives.
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

// The workflow that publishes makes, signs and uploads files that scripts/release makes, and a user
// verifies the signature as scripts/sign does.
func TestReleaseWorkflowPublishesTheFiles(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile("../../" + name)
		fatal.If(t, err)
		return string(text)
	}
	text := read(".github/workflows/release.yml")
	var workflow struct {
		Permissions any
		Jobs        map[string]struct {
			Permissions map[string]string
			Steps       []struct{ Run, Uses string }
		}
	}
	fatal.If(t, yaml.Unmarshal([]byte(text), &workflow))
	publish := workflow.Jobs["publish"]
	if publish.Permissions["attestations"] != "write" || publish.Permissions["id-token"] != "write" {
		t.Errorf("the job may not sign: %v", publish.Permissions)
	}
	for name, made := range map[string]string{"dist/checksums.txt": ">checksums.txt",
		"dist/holdfast_${TAG#v}_image.tar": "dist/holdfast_${version#v}_image.tar"} {
		if !strings.Contains(text, name) || !strings.Contains(read("scripts/release"), made) {
			t.Errorf("the workflow must upload %s, and scripts/release make it", name)
		}
	}
	// In any order of its lines: the page has them for a user.
	for _, flag := range regexp.MustCompile(`--(?:bundle|certificate-\S+) \S+`).FindAllString(
		regexp.MustCompile("(?s)```sh\nTAG=.*?```").FindString(read("docs/releasing.md")), -1) {
		if !strings.Contains(read("scripts/sign"), flag) {
			t.Errorf("scripts/sign does not verify with %s", flag)
		}
	}
}

// The tags are in an order in which each module comes after those that it requires.
func TestReleaseOrdersTheModules(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("scripts/release needs bash")
	}
	out, err := exec.Command("../../scripts/release", "--order").Output()
	fatal.If(t, err)
	folders := strings.Fields(string(out))
	if len(folders) < 10 || folders[0] != "." {
		t.Fatalf("the order is %v", folders)
	}
	required := regexp.MustCompile(`(?m)^\s*(?:require )?github\.com/holdfast-go/holdfast(/\S+)? v`)
	for i, folder := range folders {
		text, err := os.ReadFile(filepath.Join("../..", folder, "go.mod"))
		fatal.If(t, err)
		for _, m := range required.FindAllStringSubmatch(string(text), -1) {
			on := "."
			if m[1] != "" {
				on = m[1][1:]
			}
			if at := slices.Index(folders, on); at < 0 || at >= i {
				t.Errorf("%s requires %s, which is not tagged before: %v", folder, on, folders)
			}
		}
	}
}
