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
)

// The example of a publishing CI is YAML, and uploads files that a release has.
func TestReleasingPageNamesTheFiles(t *testing.T) {
	page, err := os.ReadFile("../../docs/releasing.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("the page has no example")
	}
	var job struct {
		Permissions map[string]string
		Steps       []map[string]any
	}
	if err := yaml.Unmarshal(block[1], &job); err != nil {
		t.Fatal(err)
	}
	if job.Permissions["attestations"] != "write" || job.Permissions["id-token"] != "write" || len(job.Steps) < 3 {
		t.Errorf("the job is %+v", job)
	}
	script, err := os.ReadFile("../../scripts/release")
	if err != nil {
		t.Fatal(err)
	}
	for name, made := range map[string]string{"dist/checksums.txt": ">checksums.txt",
		"dist/holdfast_${TAG#v}_image.tar": "dist/holdfast_${version#v}_image.tar"} {
		if !strings.Contains(string(block[1]), name) || !strings.Contains(string(script), made) {
			t.Errorf("the example must upload %s, and scripts/release make it", name)
		}
	}
}

// The tags are in an order in which each module comes after those that it requires.
func TestReleaseOrdersTheModules(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("scripts/release needs bash")
	}
	out, err := exec.Command("../../scripts/release", "--order").Output()
	if err != nil {
		t.Fatal(err)
	}
	folders := strings.Fields(string(out))
	if len(folders) < 10 || folders[0] != "." {
		t.Fatalf("the order is %v", folders)
	}
	required := regexp.MustCompile(`(?m)^\s*(?:require )?github\.com/holdfast-go/holdfast(/\S+)? v`)
	for i, folder := range folders {
		text, err := os.ReadFile(filepath.Join("../..", folder, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
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
