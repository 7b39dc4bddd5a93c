package versions

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// A peer is a running agent.
type peer struct {
	*testing.T
	name string

	mu      sync.Mutex
	in      *json.Encoder
	waiting map[int]chan Answer
	last    int
}

func (v version) startAgent(t *testing.T, servers ...*redisserver.Server) *peer {
	t.Helper()
	args := []string{"versions"}
	for _, srv := range servers {
		args = append(args, srv.Addr())
	}
	agent := harness.Start(t, exec.Command(v.agent, args...))
	p := &peer{T: t, name: v.name, in: json.NewEncoder(agent.Stdin), waiting: map[int]chan Answer{}}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for {
			var a Answer
			if agent.Lines.Decode(&a) != nil {
				return
			}
			p.mu.Lock()
			p.waiting[a.ID] <- a
			p.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = agent.Stdin.Close()
		<-read
		if err := agent.Wait(); err != nil {
			t.Errorf("the agent of %s: %v", v.name, err)
		}
	})
	return p
}

// send asks for something, and does not wait.
func (p *peer) send(r Request) <-chan Answer {
	p.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	r.ID = p.last
	c := make(chan Answer, 1)
	p.waiting[r.ID] = c
	if err := p.in.Encode(r); err != nil {
		p.Fatalf("%s: %v", p.name, err)
	}
	return c
}

func (p *peer) await(c <-chan Answer) Answer {
	p.Helper()
	select {
	case a := <-c:
		return a
	case <-harness.Within(p.T, 2*harness.Patience).Done():
		p.Fatalf("%s: no answer", p.name)
		return Answer{}
	}
}

func (p *peer) mustDo(r Request) Answer {
	p.Helper()
	a := p.await(p.send(r))
	if a.Error != "" {
		p.Fatalf("%s: %s %s %s: %s", p.name, r.Do, r.Kind, r.Name+r.Lease, a.Error)
	}
	return a
}

func (p *peer) mustFail(class string, r Request) Answer {
	p.Helper()
	a := p.await(p.send(r))
	if a.Error == "" || a.Class != class {
		p.Fatalf("%s: %s %s %s: class %q, error %q, want an error of class %q", p.name, r.Do, r.Kind, r.Name+r.Lease,
			a.Class, a.Error, class)
	}
	return a
}

// awaitWaiters waits until the name has so many waiters.
func (p *peer) awaitWaiters(name string, n int) {
	p.Helper()
	harness.Eventually(p.T, "the name has its waiters",
		func() bool { return p.mustDo(Request{Do: "inspect", Name: name}).Waiters == n })
}

const (
	// untagged is the commit that stands for the last version until there is a tag.
	untagged = "0465b6acae6ede36dc6e5f903eb926f90e4eda01"

	// formatBefore is the last commit of the format before.
	formatBefore = "e6fc2cbec4ea78618f1c75936474829a78407e6a"

	agentPackage = "proof/versions/agent"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// A version is the programs of one commit.
type version struct {
	name   string
	agent  string
	worker string // the tests of proof, which run a workload.Plan; empty if it was not wanted
}

// git runs git in this clone. ok is false if git refuses.
func git(args ...string) (out string, ok bool) {
	text, err := exec.Command("git", args...).Output()
	return strings.TrimSpace(string(text)), err == nil
}

func repositoryRoot(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// earlierCommit returns the version that this one must run beside.
func earlierCommit() string {
	if commit := os.Getenv("HOLDFAST_EARLIER"); commit != "" {
		return commit
	}
	// A tag of this very commit would be the same version.
	if tag, ok := git("describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", "HEAD^"); ok {
		return tag
	}
	return untagged
}

// unpackCommit unpacks a commit. It skips the test if this clone has no such commit.
func unpackCommit(t *testing.T, commit string) (dir string) {
	t.Helper()
	harness.Long(t)
	if _, ok := git("cat-file", "-e", commit+"^{commit}"); !ok {
		t.Skipf("this clone has no commit %s: it is shallow, or no clone (git fetch --unshallow --tags)", commit)
	}
	dir = t.TempDir()
	archive := exec.Command("git", "archive", "--format=tar", commit)
	archive.Dir = repositoryRoot(t)
	files, err := archive.Output()
	if err != nil {
		t.Fatalf("git archive %s: %v", commit, err)
	}
	unpack := exec.Command("tar", "-x", "-C", dir)
	unpack.Stdin = bytes.NewReader(files)
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, out)
	}
	return dir
}

// build builds the programs of the files in dir.
func build(t *testing.T, name, dir string, worker bool) version {
	t.Helper()
	bin := t.TempDir()
	v := version{name: name, agent: filepath.Join(bin, "agent")}
	compile(t, dir, "build", "-o", v.agent, "./"+agentPackage)
	if worker {
		v.worker = filepath.Join(bin, "worker")
		compile(t, dir, "test", "-c", "-o", v.worker, "./proof")
	}
	return v
}

func compile(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), "GOWORK="+filepath.Join(dir, "go.work"), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s, in %s: %v\n%s", strings.Join(args, " "), dir, err, out)
	}
}

func buildBoth(t *testing.T, worker bool) (now, earlier version) {
	t.Helper()
	commit := earlierCommit()
	dir := unpackCommit(t, commit)
	t.Logf("the earlier commit is %s", commit)
	return build(t, "now", repositoryRoot(t), worker), build(t, "earlier", dir, worker)
}
