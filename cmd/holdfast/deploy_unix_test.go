//go:build unix

package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

const deployFolder = "../../deploy"

// deployFile reads a file of deploy/.
func deployFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deployFolder, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A job is a running command of deploy/.
type job struct {
	*exec.Cmd
	t    *testing.T
	errs *bytes.Buffer
	out  *bufio.Reader
}

// startJob starts holdfast with arguments.
func startJob(t *testing.T, s *redisserver.Server, args ...string) *job {
	t.Helper()
	cmd, errs := program(t, s, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	j := &job{Cmd: cmd, t: t, errs: errs, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return j
}

// says waits for a line that begins so.
func (j *job) says(prefix string) {
	j.t.Helper()
	if line, err := j.out.ReadString('\n'); !strings.HasPrefix(line, prefix) {
		_ = j.Process.Kill()
		_ = j.Wait()
		j.t.Fatalf("%v says %q, %v, want %q\n%s", j.Args, line, err, prefix, j.errs)
	}
}

// ends waits for the end, and returns the exit code and what is left of the output.
func (j *job) ends() (code int, rest string) {
	j.t.Helper()
	text, err := io.ReadAll(j.out)
	if err != nil {
		j.t.Error(err)
	}
	_ = j.Wait()
	return j.ProcessState.ExitCode(), string(text)
}

func (j *job) stop() {
	j.t.Helper()
	if err := j.Process.Signal(syscall.SIGTERM); err != nil {
		j.t.Error(err)
	}
	j.ends()
}

// A composeFile is what compose.yaml may have: another field fails the test.
type composeFile struct {
	Services map[string]struct {
		Image       string
		Init        bool
		Command     []string
		Volumes     []string
		Environment map[string]string
		Restart     string
		Healthcheck struct {
			Test     []string
			Interval string
		}
		DependsOn map[string]struct{ Condition string } `yaml:"depends_on"`
		Deploy    struct{ Replicas int }
	}
	Volumes map[string]struct{}
}

// The commands of compose.yaml, as they stand there, with the Redis that stands there.
func TestComposeFileCommandsRun(t *testing.T) {
	long(t)
	var c composeFile
	decoder := yaml.NewDecoder(bytes.NewReader(deployFile(t, "compose.yaml")))
	decoder.KnownFields(true)
	if err := decoder.Decode(&c); err != nil {
		t.Fatal(err)
	}
	command := func(service string) []string {
		args := slices.Clone(c.Services[service].Command)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "$$", "$")
		}
		return args[1:]
	}
	for name, service := range c.Services {
		if want := map[bool]string{true: "redis-server",
			false: "holdfast"}[name == "redis"]; service.Command[0] != want {
			t.Errorf("the service %s runs %v", name, service.Command)
		}
		for other := range service.DependsOn {
			if len(c.Services[other].Healthcheck.Test) == 0 {
				t.Errorf("the service %s waits for the health of %s, which has no check", name, other)
			}
		}
	}
	s := redisserver.Start(t, command("redis")...)

	first := startJob(t, s, command("scheduler")...)
	first.says("scheduling with token ")
	second := startJob(t, s, command("scheduler")...)
	queued(t, s, "scheduler")
	first.stop()
	second.says("scheduling with token ")
	second.stop()

	report := startJob(t, s, command("report")...)
	report.says("report with token ")
	if code, rest := report.ends(); code != 0 || rest != "" {
		t.Errorf("the report ends with %d, %q\n%s", code, rest, report.errs)
	}
	again := startJob(t, s, command("report")...)
	if code, rest := again.ends(); code != 0 || rest != "" {
		t.Errorf("a second report within the min hold ends with %d, %q\n%s", code, rest, again.errs)
	}
}

// commandsOfNode are the lists below a node that begin with holdfast.
func commandsOfNode(node *yaml.Node) (commands [][]string) {
	var list []string
	if node.Kind == yaml.SequenceNode && node.Decode(&list) == nil && len(list) > 0 && list[0] == "holdfast" {
		return [][]string{list[1:]}
	}
	for _, child := range node.Content {
		commands = append(commands, commandsOfNode(child)...)
	}
	return commands
}

// kubernetesCommands reads all files for Kubernetes. A key that stands twice is an error.
func kubernetesCommands(t *testing.T) (commands [][]string) {
	t.Helper()
	files, err := fs.Glob(os.DirFS(deployFolder), "kubernetes/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		for decoder := yaml.NewDecoder(bytes.NewReader(deployFile(t, name))); ; {
			var node yaml.Node
			err := decoder.Decode(&node)
			if errors.Is(err, io.EOF) {
				break
			}
			var fields map[string]any
			if err != nil || node.Decode(&fields) != nil || fields["apiVersion"] == nil || fields["kind"] == nil {
				t.Fatalf("%s: %v, %v", name, err, fields)
			}
			commands = append(commands, commandsOfNode(&node)...)
		}
	}
	return commands
}

// The commands for Kubernetes and systemd run as they stand there, with a job that says its name.
func TestKubernetesAndSystemdCommandsRun(t *testing.T) {
	long(t)
	commands := kubernetesCommands(t)
	for line := range strings.Lines(string(deployFile(t, "systemd/report.service"))) {
		if args, found := strings.CutPrefix(line, "ExecStart=/usr/bin/holdfast "); found {
			commands = append(commands, strings.Fields(args))
		}
	}
	if len(commands) != 3 {
		t.Fatalf("the commands are %q", commands)
	}
	for _, args := range commands {
		end := slices.Index(args, "--")
		if end < 1 {
			t.Fatalf("%q runs no command", args)
		}
		name, script := args[end-1], `echo "runs $HOLDFAST_NAME"`
		if args[0] == "elect" {
			script += "; exec sleep 3600"
		}
		j := startJob(t, redisserver.Start(t), append(slices.Clone(args[:end+1]), "sh", "-c", script)...)
		j.says("runs " + name)
		if args[0] == "elect" {
			j.stop()
		} else if code, rest := j.ends(); code != 0 || rest != "" {
			t.Errorf("%q ends with %d, %q\n%s", args, code, rest, j.errs)
		}
	}
}

// The probes in leader.yaml are paths that examples/leader serves.
func TestProbesOfTheDeploymentExist(t *testing.T) {
	source, err := os.ReadFile("../../examples/leader/main.go")
	if err != nil {
		t.Fatal(err)
	}
	paths := 0
	for line := range strings.Lines(string(deployFile(t, "kubernetes/leader.yaml"))) {
		if path, found := strings.CutPrefix(strings.TrimSpace(line), "path: "); found {
			paths++
			if !strings.Contains(string(source), `"GET `+path+`"`) {
				t.Errorf("examples/leader does not serve %s", path)
			}
		}
	}
	if paths != 2 {
		t.Errorf("there are %d probes", paths)
	}
}

func TestSystemdUnitsVerify(t *testing.T) {
	units := map[string]string{}
	for _, name := range []string{"report.service", "report.timer"} {
		units[name] = string(deployFile(t, "systemd/"+name))
	}
	verifyUnits(t, units)
}

// verifyUnits fails if systemd finds a fault in units, with this program in the place of holdfast.
func verifyUnits(t *testing.T, units map[string]string) {
	t.Helper()
	verify, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("needs systemd-analyze")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	args := []string{"verify", "--man=no"}
	for name, text := range units {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "/usr/bin/holdfast", self)), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, path)
	}
	out, err := exec.Command(verify, args...).CombinedOutput()
	// It also reads the units that this machine has: only what it says of these counts.
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, dir) || slices.ContainsFunc(slices.Collect(maps.Keys(units)),
			func(name string) bool { return strings.Contains(line, name) }) {
			t.Error(strings.TrimSpace(line))
		}
	}
	if err != nil {
		t.Logf("systemd-analyze ends with %v:\n%s", err, out)
	}
}
