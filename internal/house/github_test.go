package house

import (
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each module is looked after by dependabot once: an adapter, which requires the lowest version of
// its library that works, for vulnerabilities alone.
func TestDependabotNamesEachModule(t *testing.T) {
	var others, adapters []string
	for _, name := range sources(".mod") {
		if folder := path.Dir(name); slices.Contains(modules(t, "adapter"), folder) {
			adapters = append(adapters, folder)
		} else {
			others = append(others, folder)
		}
	}
	folder := regexp.MustCompile(`(?m)^      - /(\S*)$`)
	entries := strings.Split(readText(t, ".github/dependabot.yml"), "package-ecosystem: gomod")[1:]
	if len(entries) != 2 {
		t.Fatalf("there are %d entries of modules, want those of adapters and the others", len(entries))
	}
	for i, want := range [][]string{adapters, others} {
		var is []string
		for _, line := range folder.FindAllStringSubmatch(entries[i], -1) {
			is = append(is, path.Clean(line[1]))
		}
		slices.Sort(is)
		slices.Sort(want)
		if !slices.Equal(is, want) {
			t.Errorf("an entry of .github/dependabot.yml has the folders\n%v\nand go.mod files are in\n%v", is, want)
		}
		if quiet := strings.Contains(entries[i], "open-pull-requests-limit: 0"); quiet != (i == 0) {
			t.Errorf("the entry of %v asks for newer versions: %v", want, !quiet)
		}
	}
}

// Workflows may read alone, unless a job says more. They name the actions of others by digest, with
// the version beside it. The targets, scripts and parts of proof that they run are there.
func TestWorkflowsRunWhatExists(t *testing.T) {
	files, err := filepath.Glob(".github/workflows/*.yml")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d workflows: %v", len(files), err)
	}
	var (
		uses   = regexp.MustCompile(`uses: (.*)`)
		pinned = regexp.MustCompile(`^[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
		target = regexp.MustCompile(`make ([a-z-]+)`)
		script = regexp.MustCompile(`\bscripts/[\w-]+`)
		parts  = regexp.MustCompile(`(?m)^(?: +part: \[|all=\()(.*)[\])]$`)
	)
	makefile, all := readText(t, "Makefile"), ""
	for _, file := range files {
		text := readText(t, file)
		all += text
		if !strings.Contains(text, "\npermissions: read-all\n") {
			t.Errorf("%s does not begin with permissions: read-all", file)
		}
		for _, action := range uses.FindAllStringSubmatch(text, -1) {
			if !pinned.MatchString(action[1]) {
				t.Errorf("%s: %s is not an action by digest, with its version", file, action[1])
			}
		}
	}
	for _, found := range target.FindAllStringSubmatch(all, -1) {
		if !strings.Contains(makefile, "\n"+found[1]+":") {
			t.Errorf("there is no target for %q", found[0])
		}
	}
	for _, name := range script.FindAllString(all, -1) {
		if !slices.Contains(allFiles(), name) {
			t.Errorf("there is no %s", name)
		}
	}
	nightly, proof := parts.FindStringSubmatch(all), parts.FindStringSubmatch(readText(t, "scripts/proof"))
	if nightly == nil || proof == nil || strings.ReplaceAll(nightly[1], ",", "") != proof[1] {
		t.Errorf("the workflows run the parts %v, and scripts/proof has %v", nightly, proof)
	}
}
