package dist

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

const version = "1.2.3" // of the trial

// TestRelease makes the files in two fresh clones of the last commit. The second has no network.
func TestRelease(t *testing.T) {
	if os.Getenv("HOLDFAST_PROOF") != "1" {
		t.Skip("minutes, and a network: only with HOLDFAST_PROOF=1")
	}
	first := clone(t, "first")
	build(t, first)
	dist := filepath.Join(first, "dist")
	commit := strings.TrimSpace(run(t, "git", "-C", first, "rev-parse", "--short=12", "HEAD"))
	check := &files{dist: dist, line: fmt.Sprintf("holdfast v%s of commit %s, %s linux/%s\n",
		version, commit, runtime.Version(), runtime.GOARCH)}

	t.Run("complete", check.complete)
	t.Run("archives", check.archives)
	t.Run("deb", check.deb)
	t.Run("rpm", check.rpm)
	t.Run("cask", check.cask)
	t.Run("sbom", check.sbom)
	t.Run("image", check.image)
	t.Run("nothing published", func(t *testing.T) {
		if tags := run(t, "git", "-C", first, "tag", "--points-at", "HEAD"); strings.Contains(tags, "v"+version) {
			t.Errorf("there is a tag: %s", tags)
		}
		if changes := run(t, "git", "-C", first, "status", "--porcelain"); changes != "" {
			t.Errorf("the clone has changes:\n%s", changes)
		}
	})
	t.Run("again, without a network", func(t *testing.T) {
		second := clone(t, "second")
		if out, err := exec.Command("unshare", "--net", "true").CombinedOutput(); err != nil {
			t.Logf("the network stays, as this system does not take it away: %s", out)
			build(t, second)
		} else {
			build(t, second, "unshare", "--net")
		}
		one := mustRead(t, filepath.Join(dist, "checksums.txt"))
		two := mustRead(t, filepath.Join(second, "dist", "checksums.txt"))
		if !bytes.Equal(one, two) {
			t.Errorf("two runs on one commit differ:\n%s\n%s", one, two)
		}
	})
}

// clone makes a clone of the last commit, at a path of its own.
func clone(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	run(t, "git", "clone", "--quiet", "--no-tags", filepath.Join("..", ".."), dir)
	return dir
}

// build makes the files in a clone. No registry is asked.
func build(t *testing.T, dir string, within ...string) {
	t.Helper()
	args := append(slices.Clone(within), filepath.Join(dir, "scripts", "release"), "--files", "v"+version)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(cmd.Environ(), "GOPROXY=off", "GOWORK=")
	t.Logf("%s", mustOutput(t, cmd))
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	return string(mustOutput(t, exec.Command(name, args...)))
}

// mustOutput returns the standard output of a command that succeeds.
func mustOutput(t *testing.T, cmd *exec.Cmd) []byte {
	t.Helper()
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s\n%s", cmd, err, out, &errs)
	}
	return out
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	fatal.If(t, err)
	return data
}

// files are those of a release, and the line that its command prints.
type files struct {
	dist, line string
}

func (f *files) path(suffix string) string {
	return filepath.Join(f.dist, "holdfast_"+version+"_"+suffix)
}

// complete: each file is there, and has its checksum.
func (f *files) complete(t *testing.T) {
	want := []string{"checksums.txt", "holdfast.rb", "holdfast_" + version + "_image.tar"}
	for _, arch := range []string{"amd64", "arm64"} {
		for _, suffix := range []string{
			"darwin_A.tar.gz",
			"linux_A.tar.gz",
			"windows_A.zip",
			"linux_A.deb",
			"linux_A.rpm",
			"darwin_A.cdx.json",
			"linux_A.cdx.json",
			"windows_A.cdx.json",
		} {
			want = append(want, "holdfast_"+version+"_"+strings.ReplaceAll(suffix, "A", arch))
		}
	}
	slices.Sort(want)
	entries, err := os.ReadDir(f.dist)
	fatal.If(t, err)
	var got []string
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	if !slices.Equal(got, want) {
		t.Errorf("dist/ has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	sums := exec.Command("sha256sum", "-c", "checksums.txt")
	sums.Dir = f.dist
	mustOutput(t, sums)
	listed := bytes.Count(mustRead(t, filepath.Join(f.dist, "checksums.txt")), []byte("\n"))
	if listed != len(got)-1 {
		t.Errorf("checksums.txt has %d lines for %d files", listed, len(got)-1)
	}
}

// archives: the one of this system runs, the others have the same files.
func (f *files) archives(t *testing.T) {
	for _, system := range []string{"linux", "darwin", "windows"} {
		for _, arch := range []string{"amd64", "arm64"} {
			dir, program := t.TempDir(), "holdfast"
			if system == "windows" {
				run(t, "unzip", "-q", f.path(system+"_"+arch+".zip"), "-d", dir)
				program += ".exe"
			} else {
				run(t, "tar", "-xzf", f.path(system+"_"+arch+".tar.gz"), "-C", dir)
			}
			for _, name := range []string{
				program,
				"LICENSE",
				"THIRD_PARTY.txt",
				"CHANGELOG.md",
				"command.md",
				"man/holdfast-run.1",
				"completions/holdfast.bash",
				"completions/holdfast.zsh",
				"completions/holdfast.fish",
			} {
				if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
					t.Errorf("%s/%s has no %s: %v", system, arch, name, err)
				}
			}
			if system == runtime.GOOS && arch == runtime.GOARCH {
				f.runs(t, filepath.Join(dir, program))
			}
		}
	}
}

func (f *files) runs(t *testing.T, program string, args ...string) {
	t.Helper()
	if got := run(t, program, append(args, "version")...); got != f.line {
		t.Errorf("%s prints %q, want %q", program, got, f.line)
	}
}

// runsIn: the program in a root prints the same, if this user may change its root in it.
func (f *files) runsIn(t *testing.T, root string, options ...string) {
	t.Helper()
	if os.Geteuid() == 0 {
		f.runs(t, "chroot", append(options, root, "/usr/bin/holdfast")...)
	} else {
		f.runs(t, filepath.Join(root, "usr/bin/holdfast"))
	}
}

// deb is installed into a root of its own, and run there.
func (f *files) deb(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"updates", "info"} {
		fatal.If(t, os.MkdirAll(filepath.Join(root, "var/lib/dpkg", dir), 0o755))
	}
	for _, name := range []string{"status", "available"} {
		fatal.If(t, os.WriteFile(filepath.Join(root, "var/lib/dpkg", name), nil, 0o644))
	}
	run(t, "dpkg", "--root="+root, "--force-not-root", "--log="+filepath.Join(root, "log"), "-i",
		f.path("linux_"+runtime.GOARCH+".deb"))
	status := run(t, "dpkg-query", "--admindir="+filepath.Join(root, "var/lib/dpkg"), "-W",
		"-f=${Status} ${Version}", "holdfast")
	if status != "install ok installed "+version {
		t.Errorf("dpkg says %q", status)
	}
	f.runsIn(t, root)
	packed := mustRead(t, filepath.Join(root, "usr/share/man/man1/holdfast-run.1.gz"))
	page, err := gzip.NewReader(bytes.NewReader(packed))
	fatal.If(t, err)
	if text, err := io.ReadAll(page); err != nil || !bytes.Contains(text, []byte(".TH")) ||
		!bytes.Contains(text, []byte(`\-\-on\-lost`)) {
		t.Errorf("the page of man: %v\n%s", err, text)
	}
	run(t, "bash", "-n", filepath.Join(root, "usr/share/bash-completion/completions/holdfast"))
	for _, name := range []string{
		"zsh/vendor-completions/_holdfast",
		"fish/vendor_completions.d/holdfast.fish",
		"doc/holdfast/copyright",
		"doc/holdfast/THIRD_PARTY.txt",
		"doc/holdfast/operations.md",
		"doc/holdfast/alerts.yml",
		"doc/holdfast/grafana.json",
		"../lib/systemd/system/holdfast-serve.service",
	} {
		if len(mustRead(t, filepath.Join(root, "usr/share", name))) == 0 {
			t.Errorf("%s is empty", name)
		}
	}
}

func (f *files) rpm(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		list := run(t, "rpm", "-qlp", f.path("linux_"+arch+".rpm"))
		for _, name := range []string{
			"/usr/bin/holdfast",
			"/usr/share/man/man1/holdfast-run.1.gz",
			"/usr/share/bash-completion/completions/holdfast",
			"/usr/share/zsh/site-functions/_holdfast",
			"/usr/share/fish/vendor_completions.d/holdfast.fish",
			"/usr/share/doc/holdfast/THIRD_PARTY.txt",
		} {
			if !slices.Contains(strings.Fields(list), name) {
				t.Errorf("%s has no %s:\n%s", arch, name, list)
			}
		}
	}
	about := run(t, "rpm", "-qp", "--qf", "%{NAME} %{VERSION} %{LICENSE}", f.path("linux_amd64.rpm"))
	if about != "holdfast "+version+" Apache-2.0" {
		t.Errorf("rpm says %q", about)
	}
}

// cask: it has the checksum of each archive, and Ruby can read it.
func (f *files) cask(t *testing.T) {
	path := filepath.Join(f.dist, "holdfast.rb")
	cask := string(mustRead(t, path))
	sums := regexp.MustCompile(`(?m)^(\S+)  (\S+_(?:linux|darwin)_\S+\.tar\.gz)$`).FindAllStringSubmatch(
		string(mustRead(t, filepath.Join(f.dist, "checksums.txt"))), -1)
	for _, line := range sums {
		if !strings.Contains(cask, `sha256 "`+line[1]+`"`) {
			t.Errorf("the cask has not the checksum of %s", line[2])
		}
	}
	for _, want := range []string{
		`binary "holdfast"`,
		`manpage "man/holdfast-run.1"`,
		`bash_completion "completions/holdfast.bash"`,
	} {
		if !strings.Contains(cask, want) {
			t.Errorf("the cask has no %s", want)
		}
	}
	if len(sums) != 4 || t.Failed() {
		t.Fatalf("%d archives; the cask is:\n%s", len(sums), cask)
	}
	if _, err := exec.LookPath("ruby"); err != nil {
		t.Skip("Ruby is not here to read the cask; its text was looked at")
	}
	run(t, "ruby", "-c", path)
}

// sbom: it names the modules that the program itself names, with their versions.
func (f *files) sbom(t *testing.T) {
	var list struct {
		Format     string `json:"bomFormat"`
		Components []struct {
			Name, Version string
			Licenses      []any
		}
	}
	fatal.If(t, json.Unmarshal(mustRead(t, f.path("linux_"+runtime.GOARCH+".cdx.json")), &list))
	has := map[string]string{}
	for _, c := range list.Components {
		has[c.Name] = c.Version
		if len(c.Licenses) == 0 {
			t.Errorf("%s has no license in the SBOM", c.Name)
		}
	}
	dir := t.TempDir()
	run(t, "tar", "-xzf", f.path("linux_"+runtime.GOARCH+".tar.gz"), "-C", dir, "holdfast")
	modules := regexp.MustCompile(`(?m)^\tdep\t(\S+)\t(v\S+)\t`).FindAllStringSubmatch(
		run(t, "go", "version", "-m", filepath.Join(dir, "holdfast")), -1)
	for _, m := range modules {
		if has[m[1]] != m[2] {
			t.Errorf("%s %s: the SBOM has version %q", m[1], m[2], has[m[1]])
		}
	}
	if list.Format != "CycloneDX" || len(modules) < 10 || has["github.com/redis/go-redis/v9"] == "" ||
		has["std"] == "" {
		t.Errorf("format %q, %d modules of the program, %d components", list.Format, len(modules), len(list.Components))
	}
}
