package moving

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
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
	often int // each must be inside to go on
	live  []*member
}

// A member is a process, seen from the test, or a loop that runs a command again and again.
type member struct {
	name, release string
	end           func(kill bool) error // asks it to end, or kills it, and waits for it
}

// gather makes a fleet with no member, and the servers that its library needs.
func gather(t *testing.T, library string) *fleet {
	t.Helper()
	f := &fleet{T: t, section: openSection(t), often: 3}
	f.plan = plan{Library: library, Redis: redisserver.Start(t).Addr(), Section: f.Addr().String()}
	if library == "etcd" {
		f.plan.Etcd = startEtcd(t)
	}
	t.Cleanup(func() {
		for _, m := range f.live {
			_ = m.end(true)
		}
	})
	return f
}

// start starts a process of a release.
func (f *fleet) start(release string) *member {
	f.Helper()
	p := f.next(release)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), p.environ())
	return f.serve(p, cmd)
}

// serve starts a process that ends when its input does.
func (f *fleet) serve(p plan, cmd *exec.Cmd) *member {
	f.Helper()
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		f.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		f.Fatal(err)
	}
	return f.join(p, func(kill bool) error {
		if kill {
			_ = cmd.Process.Kill()
		}
		in.Close()
		return cmd.Wait()
	})
}

// next returns the plan of another member.
func (f *fleet) next(release string) plan {
	f.count++
	p := f.plan
	p.Worker, p.Release = strconv.Itoa(f.count), release
	return p
}

func (f *fleet) join(p plan, end func(kill bool) error) *member {
	m := &member{p.Worker, p.Release, end}
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
	if err := m.end(kill); err != nil && !kill {
		f.Errorf("%s (%s): %v", m.name, m.release, err)
	}
}

func (f *fleet) visitsOf(m *member) int { return f.section.count(m.name) }

// goesOn waits until each of the processes, or of all, has been inside often enough.
func (f *fleet) goesOn(members ...*member) {
	f.Helper()
	if len(members) == 0 {
		members = f.live
	}
	wanted := map[*member]int{}
	for _, m := range members {
		wanted[m] = f.visitsOf(m) + f.often
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
				f.Fatalf("%s (%s) does not get in", m.name, m.release)
			}
		case <-time.After(5 * time.Millisecond):
		}
	}
}
