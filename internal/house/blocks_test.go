package house

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A blockTest covers all blocks of code in one language on a page, or on each page ("*"). The test
// is a file and a function in it.
type blockTest struct{ page, language, file, test string }

// blockTests has a row for each kind of block: a block that no row covers fails the test below. A
// new page needs no row for Go and shell. CONTRIBUTING.md says what these rows ask of a block.
var blockTests = []blockTest{
	{"*", "go", "internal/house/blocks_test.go", "TestDocsGoIsCompiled"},
	{"*", "sh", "internal/house/blocks_test.go", "TestDocsShellNamesWhatExists"},
	{"*", "sh", "cmd/holdfast/docs_shell_unix_test.go", "TestDocsShellIsRead"},
	{"*", "sh", "cmd/holdfast/docs_shell_unix_test.go", "TestDocsShellRuns"},

	{"README.md", "text", "examples/readme_test.go", "TestReadmeErrorIsThatOfTheLibrary"},
	{"SECURITY.md", "redis", "proof/security/tenants_test.go", "TestPageTenantIsKeptApart"},
	{"docs/command.md", "cron", "cmd/holdfast/docs_shell_unix_test.go", "TestDocsCronLinesRun"},
	{"docs/command.md", "ini", "cmd/holdfast/docs_shell_unix_test.go", "TestDocsUnitRuns"},
	{"docs/command.md", "text", "cmd/holdfast/internal/show/show_test.go", "TestChainIsThatOfThePage"},
	{"docs/fencing.md", "redis", "proof/fence/page_test.go", "TestPageRedisCommandRuns"},
	{"docs/fencing.md", "sql", "fence/page_test.go", "TestPageShowsTheStatements"},
	{"docs/operations.md", "sh", "cmd/holdfast/operations_unix_test.go", "TestOperationsAreAllRun"},
	{"docs/quorum.md", "acl", "proof/faults/permissions_test.go", "TestQuorumPermissions"},
	{"docs/recipes.md", "yaml", "cmd/holdfast/docs_shell_unix_test.go", "TestDocsShellIsRead"},
	{"docs/steps.md", "lua", "examples/steps/steps_test.go", "TestPageQuotesTheCode"},
	{"docs/steps.md", "text", "examples/steps/steps_test.go", "TestSteps"},
}

type docsBlock struct {
	page, language, code string
	line                 int
}

// docsBlocks returns the fenced blocks of all pages. A translated page has the blocks of the page
// that it translates, so it is left out.
func docsBlocks(t *testing.T) (blocks []docsBlock) {
	t.Helper()
	fence := regexp.MustCompile("(?ms)^[ \t]*```([^\n]*)\n(.*?)^[ \t]*```[ \t]*$")
	for _, page := range sources(".md") {
		if strings.HasSuffix(page, ".zh-CN.md") {
			continue
		}
		text := readText(t, page)
		for _, at := range fence.FindAllStringSubmatchIndex(text, -1) {
			line := strings.Count(text[:at[0]], "\n") + 1
			blocks = append(blocks, docsBlock{page, strings.TrimSpace(text[at[2]:at[3]]), text[at[4]:at[5]], line})
		}
	}
	if len(blocks) < 30 {
		t.Fatalf("only %d blocks were found", len(blocks))
	}
	return blocks
}

// Each block of code on a page has a test.
func TestDocsBlocksAreTested(t *testing.T) {
	used := map[blockTest]bool{}
	for _, block := range docsBlocks(t) {
		covered := false
		for _, row := range blockTests {
			if row.language == block.language && (row.page == "*" || row.page == block.page) {
				covered, used[row] = true, true
			}
		}
		if !covered {
			t.Errorf("%s:%d: no test is named for %q: write one, and name it in blockTests", block.page, block.line,
				block.language)
		}
	}
	for _, row := range blockTests {
		text, err := os.ReadFile(row.file)
		if err != nil || !strings.Contains(string(text), "func "+row.test+"(t *testing.T)") {
			t.Errorf("%s has no %s: %v", row.file, row.test, err)
		}
		if !used[row] {
			t.Errorf("%s of %s covers no block: %s has none in %q", row.test, row.file, row.page, row.language)
		}
	}
}

// Code that is only indented has no language, and no test finds it.
func TestDocsCodeIsFenced(t *testing.T) {
	list, indented := regexp.MustCompile(`^ {0,3}([-*]|\d+[.]) `), regexp.MustCompile(`^ {4,}\S`)
	for _, page := range sources(".md") {
		item, before := false, ""
		for line := range strings.Lines(codeBlock.ReplaceAllString(readText(t, page), "")) {
			line = strings.TrimRight(line, "\n")
			if indented.MatchString(line) && before == "" && !item {
				t.Errorf("%s: a block without a fence: %s", page, line)
			}
			if line != "" && !strings.HasPrefix(line, " ") || list.MatchString(line) {
				item = list.MatchString(line)
			}
			before = line
		}
	}
}

// Each Go block stands in a Go file of the repository, so it is compiled: word for word, apart from
// the indentation.
func TestDocsGoIsCompiled(t *testing.T) {
	indentation := regexp.MustCompile(`(?m)^\t+`)
	plain := func(text string) string { return indentation.ReplaceAllString(text, "") }
	var files []string
	for _, name := range sources(".go") {
		files = append(files, "\n"+plain(readText(t, name)))
	}
	for _, block := range docsBlocks(t) {
		code := plain(block.code)
		if block.language == "go" &&
			!slices.ContainsFunc(files, func(file string) bool { return strings.Contains(file, "\n"+code) }) {
			t.Errorf("%s:%d: no Go file has this code:\n%s", block.page, block.line, code)
		}
	}
}

var (
	makeTarget = regexp.MustCompile(`(?:^|[|&;] *)make ([a-z-]+)`)
	proofPart  = regexp.MustCompile(`(?:^|[|&;] *)make proof PART=([a-z]+)`)
	aScript    = regexp.MustCompile(`(?:^|[|&;] *)(scripts/[\w-]+)`)
	goRun      = regexp.MustCompile(`\bgo (?:-C (\S+) )?run (\./\S*)`)
	goTest     = regexp.MustCompile(`\bgo (?:-C (\S+) )?test\b(.*)`)
	goTestRun  = regexp.MustCompile(`-run[ =]'?([^' ]+)`)
	aTest      = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	aPackage   = regexp.MustCompile(` (\./[\w./-]*|\.)`)
)

// The targets of make, scripts, packages and tests that the pages tell a reader to run exist. That
// is so in blocks, and in text between back quotes.
func TestDocsShellNamesWhatExists(t *testing.T) {
	makefile, proofs := readText(t, "Makefile"), readText(t, "scripts/proof")
	isThere := func(name string) bool { _, err := os.Stat(name); return err == nil }
	var lines []docsBlock
	for _, block := range docsBlocks(t) {
		if block.language == "sh" {
			for line := range strings.Lines(block.code) {
				lines = append(lines, docsBlock{block.page, "", strings.TrimSpace(line), block.line})
			}
		}
	}
	for _, page := range sources(".md") {
		for _, match := range quoted.FindAllStringSubmatch(codeBlock.ReplaceAllString(readText(t, page), ""), -1) {
			lines = append(lines, docsBlock{page, "", match[1], 0})
		}
	}
	seen := 0
	for _, at := range lines {
		command, _, _ := strings.Cut(at.code, " #")
		for _, part := range []struct {
			pattern *regexp.Regexp
			exists  func(found []string) bool
		}{
			{makeTarget, func(found []string) bool { return strings.Contains(makefile, "\n"+found[1]+":") }},
			{proofPart, func(found []string) bool {
				return found[1] == "name" || strings.Contains(proofs, "\n"+found[1]+"() {")
			}},
			{aScript, func(found []string) bool { return isThere(found[1]) }},
			{goRun, func(found []string) bool { return isThere(path.Join(found[1], found[2])) }},
		} {
			for _, found := range part.pattern.FindAllStringSubmatch(command, -1) {
				if seen++; !part.exists(found) {
					t.Errorf("%s: %s: there is no %s", at.page, command, found[0])
				}
			}
		}
		if found := goTest.FindStringSubmatch(command); found != nil {
			seen++
			testsExist(t, at.page, found[1], found[2])
		}
	}
	if seen < 20 {
		t.Errorf("only %d commands were found", seen)
	}
}

// testsExist looks for each alternative of -run in the package that go test names.
func testsExist(t *testing.T, page, module, args string) {
	t.Helper()
	dirs, run := aPackage.FindAllStringSubmatch(args, -1), goTestRun.FindStringSubmatch(args)
	for _, dir := range dirs {
		files, err := os.ReadDir(path.Join(".", module, dir[1]))
		if err != nil {
			t.Errorf("%s: go test%s: %v", page, args, err)
			continue
		}
		if run == nil || len(dirs) > 1 {
			continue
		}
		var tests []string
		for _, file := range files {
			if strings.HasSuffix(file.Name(), "_test.go") {
				for _, name := range aTest.FindAllStringSubmatch(
					readText(t, path.Join(module, dir[1], file.Name())), -1) {
					tests = append(tests, name[1])
				}
			}
		}
		for pattern := range strings.SplitSeq(strings.ReplaceAll(run[1], `\|`, "|"), "|") {
			pattern, _, _ = strings.Cut(pattern, "/")
			if name, err := regexp.Compile(pattern); err != nil || !slices.ContainsFunc(tests, name.MatchString) {
				t.Errorf("%s: go test%s: no test %s", page, args, pattern)
			}
		}
	}
}
