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
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/spf13/cobra"
)

// An endings is with which exit codes the scripts of testdata end each command, by its path.
type endings map[string][]int

// driven are the commands that need more than a script: a test in Go drives them.
var driven = []string{"holdfast demo", "holdfast quorum status", "holdfast serve", "holdfast top"}

var invoked = regexp.MustCompile(`holdfast ([^|;)<>]*)`)

func readEndings(t *testing.T) endings {
	t.Helper()
	e := endings{}
	scripts, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, path := range scripts {
		text, err := os.ReadFile(path)
		fatal.If(t, err)
		e.readScript(string(text))
	}
	return e
}

func (e endings) readScript(text string) {
	background := map[string]string{} // the command of each process in the background
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		for _, match := range invoked.FindAllStringSubmatch(line, -1) {
			cmd, _, err := newRoot().Find(strings.Fields(match[1]))
			if err != nil {
				continue
			}
			command := cmd.CommandPath()
			switch {
			case words[0] == "exits":
				e.add(command, words[1])
			case words[0] == "bg":
				background[words[1]] = command
			case strings.HasPrefix(line, "exec sh -c 'holdfast") && !strings.ContainsAny(line, "|;"):
				e.add(command, "0")
			default:
				for _, code := range regexp.MustCompile(`test \$\? = (\d+)`).FindAllStringSubmatch(line, -1) {
					e.add(command, code[1])
				}
			}
		}
		if len(words) > 2 && words[0] == "ended" {
			e.add(background[words[1]], words[2])
		}
	}
}

// add notes an exit code. The commands below one command share its help.
func (e endings) add(command, text string) {
	if code, err := strconv.Atoi(text); err == nil {
		e[withHelp(command)] = append(e[withHelp(command)], code)
	}
}

// withHelp is the path of the command whose help names the exit codes.
func withHelp(command string) string {
	if strings.HasPrefix(command, "holdfast latch ") {
		return "holdfast latch"
	}
	return command
}

// Every exit code that the help of a command names is the end of that command in a script.
func TestScriptsSeeEveryExitCode(t *testing.T) {
	e := readEndings(t)
	each(newRoot(), func(cmd *cobra.Command) {
		if slices.Contains(driven, cmd.CommandPath()) {
			return
		}
		_, told, _ := strings.Cut(cmd.Long, "Exit codes:")
		for _, code := range regexp.MustCompile(`(?:^|;)\s*(\d+)(\+n)?`).FindAllStringSubmatch(told, -1) {
			want, _ := strconv.Atoi(code[1])
			seen := func(got int) bool { return got == want || code[2] != "" && got > want }
			if !slices.ContainsFunc(e[withHelp(cmd.CommandPath())], seen) {
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
	"holdfast ask":        "job",
	"holdfast evict":      "job aaaaaaaaaaaaaaaa",
	"holdfast history":    "job",
	"holdfast inspect":    "job",
	"holdfast latch down": "job",
	"holdfast latch set":  "job 1",
	"holdfast latch wait": "job",
	"holdfast once":       "--fresh 1h job -- true",
	"holdfast release":    "--ticket ticket",
	"holdfast renew":      "--ticket ticket",
	"holdfast run":        "job -- true",
	"holdfast shards":     "job --of 4 -- true",
	"holdfast wait":       "job",
	"holdfast why":        "job",
}

// Every command that talks to servers refuses bad values of each flag of the connection, before
// anything is sent.
func TestConnectionFlagsOfEveryCommand(t *testing.T) {
	t.Setenv("REDIS_URL", "")
	t.Chdir(t.TempDir())
	fatal.If(t, os.WriteFile("ticket", []byte("ticket"), 0o600))
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
