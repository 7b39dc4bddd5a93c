//go:build unix

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A coverage is what the scripts of testdata do with the commands, by the path of a command.
type coverage struct {
	root  *cobra.Command
	flags map[string]bool // "COMMAND --FLAG"
	codes map[string][]int
}

// driven are the commands that need more than a script, with the tests that drive them.
var driven = map[string]string{
	"holdfast demo":          "demo_test.go",
	"holdfast doctor":        "doctor_test.go",
	"holdfast quorum status": "quorum_test.go",
	"holdfast serve":         "internal/serve/serve_test.go",
	"holdfast top":           "top_unix_test.go",
}

var invoked = regexp.MustCompile(`holdfast ([^|;)<>]*)`)

func readCoverage(t *testing.T) coverage {
	t.Helper()
	c := coverage{newRoot(), map[string]bool{}, map[string][]int{}}
	scripts, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, path := range scripts {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		c.script(string(text))
	}
	for command, path := range driven {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, flag := range regexp.MustCompile(`--([a-z-]+)`).FindAllStringSubmatch(string(text), -1) {
			c.flags[command+" "+flag[0]] = true
		}
	}
	return c
}

// script reads the lines of a script.
func (c *coverage) script(text string) {
	background := map[string]string{} // the command of each process in the background
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		for _, match := range invoked.FindAllStringSubmatch(line, -1) {
			command := c.invocation(strings.Fields(match[1]))
			switch {
			case words[0] == "exits":
				c.code(command, words[1])
			case words[0] == "bg":
				background[words[1]] = command
			case strings.HasPrefix(line, "exec sh -c 'holdfast") && !strings.ContainsAny(line, "|;"):
				c.code(command, "0")
			default:
				for _, code := range regexp.MustCompile(`test \$\? = (\d+)`).FindAllStringSubmatch(line, -1) {
					c.code(command, code[1])
				}
			}
		}
		if len(words) > 2 && words[0] == "ended" {
			c.code(background[words[1]], words[2])
		}
	}
}

// invocation notes the flags of one call, and returns the path of its command.
func (c *coverage) invocation(words []string) string {
	cmd, _, err := c.root.Find(words)
	if err != nil {
		return ""
	}
	path := cmd.CommandPath()
	for _, word := range words {
		word = strings.Trim(word, `"'`)
		name, long := strings.CutPrefix(word, "--")
		name, _, _ = strings.Cut(name, "=")
		switch {
		case long && name == "":
			return path
		case long:
			c.flags[path+" --"+name] = true
		case strings.HasPrefix(word, "-"):
			for _, short := range word[1:] {
				if flag := cmd.Flags().ShorthandLookup(string(short)); flag != nil {
					c.flags[path+" --"+flag.Name] = true
				}
			}
		}
	}
	return path
}

// code notes an exit code. The commands below one command share its help.
func (c *coverage) code(command, text string) {
	if code, err := strconv.Atoi(text); err == nil {
		c.codes[withHelp(command)] = append(c.codes[withHelp(command)], code)
	}
}

// withHelp is the path of the command whose help names the exit codes.
func withHelp(command string) string {
	if strings.HasPrefix(command, "holdfast latch ") {
		return "holdfast latch"
	}
	return command
}

// Every flag of every command is given in a script, or in a test of a command that needs more than
// a script. TestConnectionFlagsOfEveryCommand gives those of the connection.
func TestScriptsGiveEveryFlag(t *testing.T) {
	c := readCoverage(t)
	each(c.root, func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			if flag.Name != "help" && !ofConnection(flag.Name) && !c.flags[cmd.CommandPath()+" --"+flag.Name] {
				t.Errorf("no script gives --%s to %s", flag.Name, cmd.CommandPath())
			}
		})
	})
}

// Every exit code that the help of a command names is the end of that command in a script.
func TestScriptsSeeEveryExitCode(t *testing.T) {
	c := readCoverage(t)
	each(c.root, func(cmd *cobra.Command) {
		if _, ok := driven[cmd.CommandPath()]; ok {
			return
		}
		_, told, _ := strings.Cut(cmd.Long, "Exit codes:")
		for _, code := range regexp.MustCompile(`(?:^|;)\s*(\d+)(\+n)?`).FindAllStringSubmatch(told, -1) {
			want, _ := strconv.Atoi(code[1])
			seen := func(got int) bool { return got == want || code[2] != "" && got > want }
			if !slices.ContainsFunc(c.codes[withHelp(cmd.CommandPath())], seen) {
				t.Errorf("no script ends %s with %s%s", cmd.CommandPath(), code[1], code[2])
			}
		}
	})
}

// each calls f for each command that does something and that the help shows.
func each(cmd *cobra.Command, f func(*cobra.Command)) {
	for _, cmd := range allCommands(cmd) {
		if cmd.Runnable() && cmd.HasParent() && !cmd.Hidden && cmd.Name() != "help" && cmd.Name() != "completion" {
			f(cmd)
		}
	}
}

// arguments are what a command takes besides the flags of the connection.
var arguments = map[string]string{
	"holdfast acquire":    "job",
	"holdfast break":      "job --token 5",
	"holdfast check":      "--ticket ticket",
	"holdfast elect":      "job -- true",
	"holdfast evict":      "job aaaaaaaaaaaaaaaa",
	"holdfast inspect":    "job",
	"holdfast latch down": "job",
	"holdfast latch set":  "job 1",
	"holdfast latch wait": "job",
	"holdfast release":    "--ticket ticket",
	"holdfast renew":      "--ticket ticket",
	"holdfast run":        "job -- true",
	"holdfast wait":       "job",
}

// Every command that talks to servers refuses bad values of each flag of the connection, before
// anything is sent.
func TestConnectionFlagsOfEveryCommand(t *testing.T) {
	t.Setenv("REDIS_URL", "")
	t.Chdir(t.TempDir())
	if err := os.WriteFile("ticket", []byte("ticket"), 0o600); err != nil {
		t.Fatal(err)
	}
	commands := 0
	each(newRoot(), func(cmd *cobra.Command) {
		if cmd.Flag("tls-ca") == nil {
			return
		}
		commands++
		nonsense, url := "nonsense", "rediss://127.0.0.1:1"
		if cmd.CommandPath() == "holdfast quorum status" {
			nonsense, url = "quorum:a,b,c", "quorum:rediss://127.0.0.1:1,rediss://127.0.0.1:2,rediss://127.0.0.1:3"
		}
		for _, bad := range []struct{ flags, want string }{
			{"--redis " + nonsense, "it is not a URL"},
			{"--redis " + url + " --tls-ca missing", "missing"},
			{"--redis " + url + " --tls-cert missing --tls-key ticket", "missing"},
			{"--redis " + url + " --tls-cert ticket --tls-key missing", "missing"},
			{"--redis " + url + " --prefix {", `--prefix "{": it must have`},
		} {
			words := append(strings.Fields(cmd.CommandPath())[1:], strings.Fields(bad.flags)...)
			words = append(words, strings.Fields(arguments[cmd.CommandPath()])...)
			if code, _, errs := execute(t, words...); code != cli.ExitUsage || !strings.Contains(errs, bad.want) {
				t.Errorf("holdfast %s: exit code %d, %q; want %d and %q", strings.Join(words, " "), code, errs,
					cli.ExitUsage, bad.want)
			}
		}
	})
	if commands < len(arguments) {
		t.Errorf("%d commands have the flags of the connection, fewer than those that take arguments", commands)
	}
}
