//go:build unix

package main

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

const docsRoot = "../.."

type shellBlock struct{ page, code string }

// markdown calls f for each page of the repository that is no translation.
func markdown(t *testing.T, f func(page, text string)) {
	t.Helper()
	err := filepath.WalkDir(docsRoot, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := entry.Name(); entry.IsDir() && name != docsRoot &&
			(base[0] == '.' || base[0] == '_' || base == "testdata" || base == "node_modules") {
			return filepath.SkipDir
		}
		if filepath.Ext(name) != ".md" || strings.HasSuffix(name, ".zh-CN.md") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		page, err := filepath.Rel(docsRoot, name)
		f(filepath.ToSlash(page), string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func fenced(t *testing.T, only, language string) (blocks []shellBlock) {
	t.Helper()
	fence := regexp.MustCompile("(?ms)^[ \t]*```" + language + "\n(.*?)^[ \t]*```[ \t]*$")
	markdown(t, func(page, text string) {
		for _, block := range fence.FindAllStringSubmatch(text, -1) {
			if only == "" || only == page {
				blocks = append(blocks, shellBlock{page, block[1]})
			}
		}
	})
	return blocks
}

// Each block of shell on a page is read by a shell, and the page names no command of holdfast and
// no flag that does not exist: in blocks, and in text between back quotes.
func TestDocsShellIsRead(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash: ", err)
	}
	blocks := fenced(t, "", "sh")
	for _, block := range blocks {
		cmd := exec.Command(bash, "-n")
		cmd.Stdin = strings.NewReader(block.code)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s\n%s", block.page, err, out, block.code)
		}
	}
	named := 0
	inline := regexp.MustCompile("(?s)`(holdfast [a-z-]+(?:\\s[^`]*)?)`")
	inBlock := regexp.MustCompile(`(?m)(?:^|[|&;(] *|[A-Z_]=\S+ +|\$\(| run: exec | - )(holdfast [a-z-][^\n;|&]*)`)
	for _, block := range slices.Concat(blocks, fenced(t, "", "cron"), fenced(t, "", "yaml")) {
		for _, found := range inBlock.FindAllStringSubmatch(strings.ReplaceAll(block.code, "\\\n", " "), -1) {
			named++
			commandExists(t, block.page, found[1])
		}
	}
	markdown(t, func(page, text string) {
		if page == "CHANGELOG.md" {
			return // it tells of what once was, too
		}
		for _, found := range inline.FindAllStringSubmatch(regexp.MustCompile("(?ms)^[ \t]*```.*?^[ \t]*```").ReplaceAllString(text, ""), -1) {
			named++
			commandExists(t, page, found[1])
		}
	})
	if len(blocks) < 20 || named < 100 {
		t.Errorf("only %d blocks and %d commands were found", len(blocks), named)
	}
}

// commandExists looks a command line up in the tree of commands, with its flags before "--".
func commandExists(t *testing.T, page, line string) {
	t.Helper()
	line, _, _ = strings.Cut(line, " #")
	words := strings.Fields(strings.NewReplacer(`\|`, " ", "[", " ", "]", " ", "...", " ").Replace(line))[1:]
	root := newRoot()
	found, _, err := root.Find(words)
	if err != nil || found == root && !strings.HasPrefix(words[0], "-") {
		t.Errorf("%s: %s: %v", page, line, err)
		return
	}
	found.InitDefaultHelpFlag()
	found.InitDefaultVersionFlag()
	for _, word := range words {
		if word == "--" || word == "|" {
			return
		}
		flag, long := strings.CutPrefix(word, "--")
		flag, _, _ = strings.Cut(strings.TrimRight(flag, ".,;)"), "=")
		short := strings.HasPrefix(word, "-") && !long && len(word) > 1
		if long && found.Flag(flag) == nil || short && found.Flags().ShorthandLookup(word[1:2]) == nil {
			t.Errorf("%s: %s: no flag %s", page, line, word)
		}
	}
}

const installs = "scripts/install runs it, in a fresh clone and a fresh module"

// notRun are the blocks of shell that no test runs, by their first line, and why.
var notRun = map[string]string{
	"go run ./cmd/holdfast demo   # eight processes, one lock, a kill -9: see what it does; needs nothing but Go": "TestDemo runs it, and this is make test",
	"git clone https://github.com/holdfast-go/holdfast":                                                           installs,
	"go mod edit -replace github.com/holdfast-go/holdfast=../holdfast":                                            installs,
	"holdfast serve --metrics-listen :9090 --class 'cron-*=cron' --class :":                                       "it serves until it is ended: TestServeMetricsAlone",
	"holdfast serve --redis redis://redis.internal":                                                               "it serves until it is ended: TestServe",
	"go run ./examples/steps       # lists the steps":                                                             "minutes of real seconds: TestSteps of examples/steps plays each step",
	"holdfast run order:42 -- flock -F /var/lock/order-42 ./bill.sh":                                              "not every system has flock: TestFlockRolling of proof/moving runs it",
	"consul lock -shell=false -child-exit-code order/42 holdfast run order:42 -- ./bill.sh":                       "it needs consul, which takes minutes to build: TestConsulRolling of proof/moving runs it",
	"go run ./bench -rows 4,5 -runs 9   # prints them, with all columns":                                          "minutes of real seconds, for numbers",
	"go run ./cmd/holdfast demo   # eight processes, one lock, a kill -9":                                         "TestDemo runs it, and this is make test",
	"go run ./bench                 # all rows but 6 and 7":                                                       "minutes: TestTable of bench runs each row for a moment",
	"holdfast once token --fresh 50m -- ./get-token":                                                              "it takes what is fetched: TestLongScripts/once",
	"holdfast shards orders --of 64 -- ./consume   # on each host":                                                "it takes what is consumed: TestLongScripts/shards",
	"make proof PART=fence":    "minutes, with three databases: make proof runs it",
	"make proof PART=release":  "minutes, with packages of all systems: make proof runs it",
	"make proof PART=versions": "minutes of real seconds: make proof runs it",
	"TAG=v0.1.0":               "there is no release yet: make release-dry verifies a signature by a key of the moment",
	"make release-dry":         "minutes: make proof PART=release runs it, in two fresh clones",
}

// TestDocsShellRuns runs the blocks of shell of all pages, each page with servers of its own. Tests
// of the repository are not run by a test; TestDocsShellNamesWhatExists looks whether they are
// there. The blocks of docs/operations.md have tests of their own.
func TestDocsShellRuns(t *testing.T) {
	long(t)
	left := map[string]bool{}
	for _, block := range fenced(t, "", "sh") {
		first, _, _ := strings.Cut(block.code, "\n")
		if block.page != "docs/operations.md" && notRun[first] == "" && !strings.Contains(block.code, "go test ") &&
			!strings.Contains(block.code, " test -v ") {
			left[block.page+": "+first] = true
		}
	}
	for name, page := range map[string]struct {
		page    string
		replace []string // texts of the blocks, and what stands for them here
		blocks  []string // by their first lines, in the order in which they run
		masters int
	}{
		"a command under a lock": {"docs/command.md", []string{"sleep 20", "sleep 0"},
			[]string{"holdfast run -v nightly -- sleep 20"}, 1},
		"a ticket": {"docs/command.md", nil,
			[]string{"holdfast acquire -w 10m --ttl 30m --ticket lock deploy"}, 1},
		"a quorum": {"docs/quorum.md", []string{"./report.sh", "true"}, []string{
			"holdfast quorum status --trust-new-nodes --redis quorum:redis://a,redis://b,redis://c",
			"holdfast quorum status --redis redis://a --redis redis://b --redis redis://c",
		}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			replace := page.replace
			for i := range page.masters {
				master := redisserver.Start(t)
				replace = append(replace, "redis://"+string(rune('a'+i)), "redis://"+master.Addr(), "redis://redis.internal",
					"redis://"+master.Addr())
			}
			dir, environ := shellWith(t, replace[len(page.replace)+1])
			for _, first := range page.blocks {
				delete(left, page.page+": "+first)
				for _, block := range fenced(t, page.page, "sh") {
					if strings.HasPrefix(block.code, first+"\n") {
						runShell(t, dir, environ, strings.NewReplacer(replace...).Replace(block.code))
					}
				}
			}
		})
	}
	for block := range left {
		t.Errorf("no test runs %s\nadd it to TestDocsShellRuns, or to notRun with the reason", block)
	}
}

// The lines of docs/command.md for cron run, with "true" in the place of the jobs.
func TestDocsCronLinesRun(t *testing.T) {
	long(t)
	blocks := fenced(t, "docs/command.md", "cron")
	if len(blocks) != 1 {
		t.Fatalf("docs/command.md has %d blocks for cron", len(blocks))
	}
	dir, environ := shellWith(t, "redis://"+redisserver.Start(t).Addr())
	schedule, ran := regexp.MustCompile(`^(?:(?:\*(?:/\d+)?|[\d,-]+) +){5}(holdfast .*) -- /opt/app/\S+$`), 0
	for line := range strings.Lines(blocks[0].code) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "REDIS_URL=") {
			continue
		}
		found := schedule.FindStringSubmatch(line)
		if found == nil {
			t.Errorf("no line of a crontab: %s", line)
			continue
		}
		for range 2 { // the second comes within the min hold of the first, or does the job again
			ran++
			if out := runShell(t, dir, environ, found[1]+" -- true"); out != "" {
				t.Errorf("%s: cron mails %s", line, out)
			}
		}
	}
	if ran != 4 {
		t.Errorf("%d runs", ran)
	}
}

// The unit that docs/command.md shows, whose job is "true" here.
func TestDocsUnitRuns(t *testing.T) {
	blocks := fenced(t, "docs/command.md", "ini")
	if len(blocks) != 1 {
		t.Fatalf("docs/command.md has %d units", len(blocks))
	}
	dir, environ := shellWith(t, "redis://"+redisserver.Start(t).Addr())
	command := regexp.MustCompile(`(?m)^ExecStart=/usr/bin/(holdfast .*) -- /opt/app/\S+$`).FindStringSubmatch(blocks[0].code)
	if command == nil {
		t.Fatalf("the unit starts no command: %s", blocks[0].code)
	}
	runShell(t, dir, environ, command[1]+" -- true")
	verifyUnits(t, map[string]string{"page.service": strings.Replace(blocks[0].code, "/opt/app/migrate", "/bin/true", 1)})
}

// shellWith returns a directory in which blocks run, and their environment: holdfast is on the PATH,
// and REDIS_URL leads to a server.
func shellWith(t *testing.T, url string) (dir string, environ []string) {
	t.Helper()
	dir = t.TempDir()
	linkProgram(t, dir)
	path := "PATH=" + dir + string(os.PathListSeparator) + os.Getenv("PATH")
	return dir, append(os.Environ(), path, "REDIS_URL="+url, "GORACE=atexit_sleep_ms=0")
}

// runShell runs a block, and returns what it prints. Each of its commands must succeed.
func runShell(t *testing.T, dir string, environ []string, block string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", block)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, environ, time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Errorf("%v:\n%s\n%s", err, block, &out)
	}
	return out.String()
}
