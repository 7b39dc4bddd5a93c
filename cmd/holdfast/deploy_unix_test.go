//go:build unix

package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

const deployFolder = "../../deploy"

func deployFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deployFolder, name))
	fatal.If(t, err)
	return text
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

// deployedCommands reads the files for Compose, Kubernetes and systemd.
func deployedCommands(t *testing.T) (commands [][]string) {
	t.Helper()
	files, err := fs.Glob(os.DirFS(deployFolder), "kubernetes/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range append(files, "compose.yaml") {
		decoder := yaml.NewDecoder(bytes.NewReader(deployFile(t, name)))
		var node yaml.Node
		for err = decoder.Decode(&node); err == nil; err = decoder.Decode(&node) {
			commands = append(commands, commandsOfNode(&node)...)
		}
		if !errors.Is(err, io.EOF) {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"report.service", "holdfast-serve.service"} {
		for line := range strings.Lines(string(deployFile(t, "systemd/"+name))) {
			if args, found := strings.CutPrefix(line, "ExecStart=/usr/bin/holdfast "); found {
				commands = append(commands, strings.Fields(args))
			}
		}
	}
	return commands
}

// The commands run as they stand there. A job that is no shell script is one that says its name.
func TestDeployedCommandsRun(t *testing.T) {
	long(t)
	commands := deployedCommands(t)
	if len(commands) != 7 {
		t.Fatalf("the commands are %q", commands)
	}
	for _, args := range commands {
		if args[0] == "serve" {
			continue // TestDeployedServeServes
		}
		end := slices.Index(args, "--")
		if end < 1 {
			t.Fatalf("%q runs no command", args)
		}
		elects, job, says := args[0] == "elect", args[end+1:], " with token "
		if job[0] == "sh" {
			job[2] = strings.ReplaceAll(job[2], "$$", "$") // in a compose file, $$ is one $
		} else {
			job, says = []string{"sh", "-c", `echo "runs $HOLDFAST_NAME"`}, "runs "+args[end-1]
			if elects {
				job[2] += "; exec sleep 3600"
			}
		}
		cmd, errs := program(t, redisserver.Start(t), append(slices.Clone(args[:end+1]), job...)...)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		fatal.If(t, err)
		stuck := time.AfterFunc(patient, func() { _ = cmd.Process.Kill() })
		line, _ := bufio.NewReader(out).ReadString('\n')
		if elects {
			_ = cmd.Process.Signal(syscall.SIGTERM)
		}
		_ = cmd.Wait()
		stuck.Stop()
		if code := cmd.ProcessState.ExitCode(); !strings.Contains(line, says) || code != 0 && !elects {
			t.Errorf("%q says %q, want %q; it ends with %d\n%s", args, line, says, code, errs)
		}
	}
}

// The commands that serve have their metrics and their probes on the second address, here at a free
// port.
func TestDeployedServeServes(t *testing.T) {
	served := 0
	for _, args := range deployedCommands(t) {
		if args[0] != "serve" {
			continue
		}
		served++
		if !slices.Contains(args, "--metrics-listen=:9090") {
			t.Errorf("%q: the manifest has port 9090", args)
		}
		cmd, _ := program(t, redisserver.Start(t), append(args,
			"--listen=127.0.0.1:0", "--metrics-listen=127.0.0.1:0")...)
		cmd.Stderr = nil
		errs, err := cmd.StderrPipe()
		if err == nil {
			err = cmd.Start()
		}
		fatal.If(t, err)
		stuck := time.AfterFunc(patient, func() { _ = cmd.Process.Kill() })
		lines := bufio.NewReader(errs)
		_, _ = lines.ReadString('\n')
		line, _ := lines.ReadString('\n')
		_, url, _ := strings.Cut(strings.TrimSuffix(line, "metrics\n"), " are at ")
		for _, path := range append(pathsOfProbes(t, "serve.yaml"), "/metrics") {
			response, err := http.Get(url + path[1:])
			if err != nil {
				t.Fatalf("%q says %q: %v", args, line, err)
			}
			_ = response.Body.Close()
			if response.StatusCode != http.StatusOK {
				t.Errorf("%q: %s is %s", args, path, response.Status)
			}
		}
		http.DefaultClient.CloseIdleConnections()
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		stuck.Stop()
		if code := cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("%q ends with %d", args, code)
		}
	}
	if served != 2 {
		t.Errorf("%d commands serve", served)
	}
}

func pathsOfProbes(t *testing.T, manifest string) (paths []string) {
	t.Helper()
	for line := range strings.Lines(string(deployFile(t, "kubernetes/"+manifest))) {
		if path, found := strings.CutPrefix(strings.TrimSpace(line), "path: "); found {
			paths = append(paths, path)
		}
	}
	if len(paths) != 2 {
		t.Errorf("%s has the probes %q", manifest, paths)
	}
	return paths
}

// The probes in leader.yaml are paths that examples/leader serves.
func TestProbesOfTheDeploymentExist(t *testing.T) {
	source, err := os.ReadFile("../../examples/leader/main.go")
	fatal.If(t, err)
	for _, path := range pathsOfProbes(t, "leader.yaml") {
		if !strings.Contains(string(source), `"GET `+path+`"`) {
			t.Errorf("examples/leader does not serve %s", path)
		}
	}
}

// Each container of Kubernetes has few rights, and says what it needs.
func TestContainersAreBounded(t *testing.T) {
	files, err := fs.Glob(os.DirFS(deployFolder), "kubernetes/*.yaml")
	if err != nil || len(files) != 3 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		text := string(deployFile(t, name))
		containers := strings.Count(text, " image: ")
		for _, want := range []string{"runAsNonRoot: true", "readOnlyRootFilesystem: true", "drop: [ALL]",
			"requests: {", "limits: {"} {
			if n := strings.Count(text, want); n != containers {
				t.Errorf("%s has %d containers, and %q %d times", name, containers, want, n)
			}
		}
	}
}

func TestSystemdUnitsVerify(t *testing.T) {
	units := map[string]string{}
	for _, name := range []string{"report.service", "report.timer", "holdfast-serve.service"} {
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
	fatal.If(t, err)
	dir := t.TempDir()
	args := []string{"verify", "--man=no"}
	for name, text := range units {
		path := filepath.Join(dir, name)
		fatal.If(t, os.WriteFile(path, []byte(strings.ReplaceAll(text, "/usr/bin/holdfast", self)), 0o600))
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
