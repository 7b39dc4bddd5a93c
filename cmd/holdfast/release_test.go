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

// goreleaserFile is what this test reads of .goreleaser.yaml. make proof PART=release runs it.
type goreleaserFile struct {
	Builds []struct {
		Dir     string
		Env     []string
		Targets []string
		Flags   []string
		Ldflags []string
	}
	Archives []struct{ Files []struct{ Src string } }
	Nfpms    []struct{ Contents []struct{ Src string } }
	Casks    []struct {
		Upload *bool `yaml:"skip_upload"`
	} `yaml:"homebrew_casks"`
	Release struct{ Disable bool }
}

func TestReleaseFileFitsTheCommand(t *testing.T) {
	const top = "../.."
	text, err := os.ReadFile(filepath.Join(top, ".goreleaser.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file goreleaserFile
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Builds) != 1 || len(file.Archives) != 1 || len(file.Nfpms) != 1 || len(file.Casks) != 1 {
		t.Fatalf("%+v", file)
	}
	build := file.Builds[0]
	want := []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64", "windows_amd64", "windows_arm64"}
	if build.Dir != "cmd/holdfast" || !slices.Equal(build.Targets, want) ||
		!slices.Contains(build.Flags, "-trimpath") ||
		!slices.Contains(build.Env, "CGO_ENABLED=0") {
		t.Errorf("the build is %+v", build)
	}
	if !file.Release.Disable || file.Casks[0].Upload == nil || !*file.Casks[0].Upload {
		t.Error("a release may publish something")
	}
	source, err := os.ReadFile("version.go")
	if err != nil {
		t.Fatal(err)
	}
	variables := regexp.MustCompile(`-X main\.(\w+)=`).FindAllStringSubmatch(strings.Join(build.Ldflags, " "), -1)
	if len(variables) != 2 {
		t.Errorf("the linker sets %d variables", len(variables))
	}
	for _, v := range variables {
		if !regexp.MustCompile(`(?m)^var .*\b` + v[1] + `\b.* string`).Match(source) {
			t.Errorf("version.go has no variable %s", v[1])
		}
	}
	var sources []string
	for _, f := range file.Archives[0].Files {
		sources = append(sources, f.Src)
	}
	for _, f := range file.Nfpms[0].Contents {
		sources = append(sources, f.Src)
	}
	for _, name := range sources {
		if strings.Contains(name, "{{") {
			continue // scripts/release makes it
		}
		if _, err := os.Stat(filepath.Join(top, name)); err != nil {
			t.Error(err)
		}
	}
}

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
