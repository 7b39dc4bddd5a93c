package house

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// Each page of docs/ is in its index, which README names.
func TestDocsIndexHasEachPage(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	if err != nil || len(pages) < 5 {
		t.Fatalf("%d pages in docs/: %v", len(pages), err)
	}
	indexed := linksOf(t, "docs/README.md")
	for _, page := range pages {
		has := func(link string) bool {
			return link == filepath.Base(page) || strings.HasPrefix(link, filepath.Base(page)+"#")
		}
		if page != filepath.FromSlash("docs/README.md") && !slices.ContainsFunc(indexed, has) {
			t.Errorf("docs/README.md does not name %s", page)
		}
	}
	if !slices.Contains(linksOf(t, "README.md"), "docs/README.md") {
		t.Error("README.md does not name docs/README.md")
	}
}

// Each link of a page to a file of the repository, or to a heading of one, leads somewhere.
func TestDocsLinksLeadSomewhere(t *testing.T) {
	checked := 0
	for _, page := range sources(".md") {
		for _, link := range linksOf(t, page) {
			if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
				continue
			}
			checked++
			target, anchor, _ := strings.Cut(link, "#")
			file := page
			if target != "" {
				file = path.Join(path.Dir(page), target)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: %s: %v", page, link, err)
			} else if anchor != "" && anchorsOf(t, file)[anchor] == 0 {
				t.Errorf("%s: %s: there is no such heading", page, link)
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d links were found", checked)
	}
}

// libraryRow is a row of docs/compatibility.md: a library, our module, and its lowest and newest
// version.
var libraryRow = regexp.MustCompile("(?m)^\\| \\S+ \\| `(\\w+)` \\| (v\\S+) \\| (v\\S+) \\|$")

// The versions of client libraries in docs/compatibility.md are those of the module files.
func TestDocsVersionsAreThoseOfTheModules(t *testing.T) {
	page := readText(t, "docs/compatibility.md")
	missing := modules(t, "store")
	for _, row := range libraryRow.FindAllStringSubmatch(page, -1) {
		module, library := row[1], libraries(t, row[1])[0]
		missing = slices.DeleteFunc(missing, func(store string) bool { return store == module })
		lowest, newest := versionIn(t, library, module+"/go.mod"), versionIn(t, library, "bench/go.mod", "go.work")
		if row[2] != lowest || row[3] != newest {
			t.Errorf("docs/compatibility.md has versions %s and %s of %s, want %s and %s", row[2], row[3], library,
				lowest, newest)
		}
	}
	if len(missing) > 0 {
		t.Errorf("docs/compatibility.md has no row of %v", missing)
	}
}

// docs/compatibility.md names the oldest Go and the number of the format.
func TestDocsNameGoAndTheFormat(t *testing.T) {
	page := readText(t, "docs/compatibility.md")
	oldest := regexp.MustCompile(`(?m)^go (\S+)$`).FindStringSubmatch(readText(t, "go.mod"))
	if oldest == nil || !strings.Contains(page, "with Go "+oldest[1]+";") {
		t.Errorf("docs/compatibility.md does not name Go %v", oldest)
	}
	format := regexp.MustCompile(`(?m)^const format = '(\d)'$`)
	for _, file := range []string{"internal/native/resource.go", "internal/quorum/resource.go"} {
		number := format.FindStringSubmatch(readText(t, file))
		if number == nil || !strings.Contains(page, "The number is "+number[1]+".") {
			t.Errorf("docs/compatibility.md does not have the format of %s, %v", file, number)
		}
	}
}

// versionIn returns the last version behind a library's path in the first of some files that has
// one.
func versionIn(t *testing.T, library string, files ...string) string {
	t.Helper()
	version := regexp.MustCompile(regexp.QuoteMeta(library) + ` (v\S+)`)
	for _, file := range files {
		if found := version.FindAllStringSubmatch(readText(t, file), -1); found != nil {
			return found[len(found)-1][1]
		}
	}
	t.Fatalf("%v do not name %s", files, library)
	return ""
}

var (
	codeBlock   = regexp.MustCompile("(?ms)^[ \t]*```.*?^[ \t]*```[ \t]*$")
	inlineLink  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	inlineText  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	headingLine = regexp.MustCompile(`(?m)^#+ +(.*?) *$`)
)

// linksOf returns the targets of a page's links, except those in blocks of code.
func linksOf(t *testing.T, page string) (links []string) {
	t.Helper()
	for _, link := range inlineLink.FindAllStringSubmatch(codeBlock.ReplaceAllString(readText(t, page), ""), -1) {
		links = append(links, link[1])
	}
	return links
}

// anchorsOf returns the names by which links reach a page's headings, with the place of each, from
// 1: in small letters, a hyphen for each space, and without punctuation. The name of a second
// heading with the same text ends in "-1".
func anchorsOf(t *testing.T, page string) map[string]int {
	t.Helper()
	anchors := map[string]int{}
	for _, heading := range headingLine.FindAllStringSubmatch(codeBlock.ReplaceAllString(readText(t, page), ""), -1) {
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', unicode.IsLetter(r), unicode.IsNumber(r):
				return unicode.ToLower(r)
			}
			return -1
		}, inlineText.ReplaceAllString(heading[1], "$1"))
		name := anchor
		for n := 1; anchors[name] != 0; n++ {
			name = fmt.Sprintf("%s-%d", anchor, n)
		}
		anchors[name] = len(anchors) + 1
	}
	return anchors
}

// suiteFolders are the folders of the suites that docs/promises.md names.
func suiteFolders() map[string]string {
	folders := map[string]string{
		"root": ".", "seam": "storetest", "storetest": "storetest", "command": "cmd/holdfast",
		"redisstore": "redisstore", "lockinfo": "lockinfo"}
	for _, name := range []string{"engine", "history", "native", "quorum", "ticketcode", "wire"} {
		folders[name] = "internal/" + name
	}
	for _, name := range []string{"clock", "faults", "fence", "security", "topology", "traps"} {
		folders[name] = "proof/" + name
	}
	return folders
}

// The tests that docs/promises.md names are in the sources of their suites. A test is written
// "suite: name". The name is a function, "section/case" of a table, or "...Scripts/file".
func TestDocsPromisesNameTests(t *testing.T) {
	sources := make(map[string]string)
	for suite, folder := range suiteFolders() {
		files, err := filepath.Glob(filepath.FromSlash(folder) + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", folder, len(files), err)
		}
		for _, file := range files {
			sources[suite] += readText(t, file)
		}
	}
	named := regexp.MustCompile("`([a-z]+): ([^`]+)`").FindAllStringSubmatch(readText(t, "docs/promises.md"), -1)
	for _, span := range named {
		suite, name := span[1], span[2]
		if group, script, ok := strings.Cut(name, "Scripts/"); ok {
			folder := "script/"
			if group == "TestLong" {
				folder = "proof/"
			}
			if _, err := os.Stat("cmd/holdfast/testdata/" + folder + script + ".txtar"); err != nil {
				t.Errorf("docs/promises.md: %s: %v", name, err)
			}
			continue
		}
		for _, text := range tracesOf(suite, name) {
			if !strings.Contains(sources[suite], text) {
				t.Errorf("docs/promises.md: %s has no %s", suite, name)
			}
		}
	}
	if len(named) < 100 { // else the page is written in another way
		t.Errorf("docs/promises.md names %d tests", len(named))
	}
}

// tracesOf returns what the source of a suite has if there is such a test.
func tracesOf(suite, name string) []string {
	if section, one, ok := strings.Cut(name, "/"); ok {
		return []string{`{"` + section + `", `, `{"` + one + `", `}
	}
	if suite == "seam" {
		return []string{`{"` + name + `", `}
	}
	return []string{"func " + name + "("}
}

// The rules that docs/promises.md names are those of the judge.
func TestDocsPromisesNameRules(t *testing.T) {
	rules := readText(t, "proof/judge/rule.go")
	rows := regexp.MustCompile(`(?m)^\| .* \| (.*) \|$`).FindAllStringSubmatch(readText(t, "docs/promises.md"), -1)
	for _, row := range rows {
		for _, rule := range regexp.MustCompile("`([a-z]+)`").FindAllStringSubmatch(row[1], -1) {
			if !strings.Contains(rules, `= "`+rule[1]+`"`) {
				t.Errorf("docs/promises.md: proof/judge has no rule %s", rule[1])
			}
		}
	}
}

// Every trap that a comment names is one of docs/traps.md, so that a reader can look it up.
func TestTrapsAreDescribed(t *testing.T) {
	described := map[string]bool{}
	for _, entry := range regexp.MustCompile(`(?m)^(\d+b?)\. `).FindAllStringSubmatch(
		readText(t, "docs/traps.md"), -1) {
		described[entry[1]] = true
	}
	references := regexp.MustCompile(`(?i)\btraps?\s+(\d+b?(?:(?:, and|,| and)\s+\d+b?)*)`)
	number := regexp.MustCompile(`\d+b?`)
	named := 0
	for _, name := range sources(".go", ".lua", ".md", ".txtar", ".sh") {
		for _, reference := range references.FindAllStringSubmatch(readText(t, name), -1) {
			for _, trap := range number.FindAllString(reference[1], -1) {
				if named++; !described[trap] {
					t.Errorf("%s names trap %s, which docs/traps.md does not describe", name, trap)
				}
			}
		}
	}
	if len(described) < 50 || named < 100 {
		t.Errorf("%d traps are described, %d named", len(described), named)
	}
}
