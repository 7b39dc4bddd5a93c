package moving

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

func TestMain(m *testing.M) {
	if os.Getenv(workerEnv) != "" {
		if err := worker(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(leak.Main(m))
}

// patience bounds what must happen, on a machine that has much else to do.
const patience = time.Minute

// long skips what is too long for every day.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("HOLDFAST_PROOF") != "1" {
		t.Skip("many processes and old lock libraries: only with HOLDFAST_PROOF=1")
	}
}

// A fleet is processes of several releases around one section.
type fleet struct {
	*testing.T
	*section
	plan  plan // what all have in common
	count int
	live  []*member
}

// A member is a process, seen from the test.
type member struct {
	name, release string
	cmd           *exec.Cmd
	in            io.Closer
}

// gather makes a fleet with no member, and the servers that its library needs.
func gather(t *testing.T, library string) *fleet {
	t.Helper()
	f := &fleet{T: t, section: openSection(t)}
	f.plan = plan{Library: library, Redis: redisserver.Start(t).Addr(), Section: f.Addr().String()}
	if library == "etcd" {
		f.plan.Etcd = startEtcd(t)
	}
	t.Cleanup(func() {
		for _, m := range f.live {
			_ = m.cmd.Process.Kill()
			_ = m.cmd.Wait()
		}
	})
	return f
}

// start starts a process of a release.
func (f *fleet) start(release string) *member {
	f.Helper()
	f.count++
	p := f.plan
	p.Worker, p.Release = fmt.Sprintf("%d", f.count), release
	m := &member{name: p.Worker, release: release, cmd: exec.Command(os.Args[0])}
	m.cmd.Env = append(os.Environ(), p.environ())
	m.cmd.Stderr = os.Stderr
	var err error
	if m.in, err = m.cmd.StdinPipe(); err != nil {
		f.Fatal(err)
	}
	if err := m.cmd.Start(); err != nil {
		f.Fatal(err)
	}
	f.live = append(f.live, m)
	return m
}

func (p plan) environ() string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	return workerEnv + "=" + string(text)
}

// end lets a process end, or kills it with kill -9, and waits for it.
func (f *fleet) end(m *member, kill bool) {
	f.Helper()
	for i, other := range f.live {
		if other == m {
			f.live = append(f.live[:i:i], f.live[i+1:]...)
			break
		}
	}
	if kill {
		_ = m.cmd.Process.Kill()
	}
	m.in.Close()
	if err := m.cmd.Wait(); err != nil && !kill {
		f.Errorf("process %s (%s): %v", m.name, m.release, err)
	}
}

func (f *fleet) visitsOf(m *member) int { return f.section.count(m.name) }

// goesOn waits until each of the processes, or of all, has been inside three times more.
func (f *fleet) goesOn(members ...*member) {
	f.Helper()
	if len(members) == 0 {
		members = f.live
	}
	wanted := map[*member]int{}
	for _, m := range members {
		wanted[m] = f.visitsOf(m) + 3
	}
	for late := time.After(patience); len(wanted) > 0; {
		for m, n := range wanted {
			if f.visitsOf(m) >= n {
				delete(wanted, m)
			}
		}
		select {
		case <-late:
			for m := range wanted {
				f.Fatalf("process %s (%s) does not get in", m.name, m.release)
			}
		case <-time.After(5 * time.Millisecond):
		}
	}
}
