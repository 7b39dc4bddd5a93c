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

	"go.yaml.in/yaml/v3"

	"github.com/holdfast-go/holdfast/internal/testing/fatal"
)

// The workflow that publishes signs and uploads the files that scripts/release makes, and the page
// for users verifies a signature as scripts/sign does.
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
	// The page tells a user how to verify. The order of its flags does not matter.
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
