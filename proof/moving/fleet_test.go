package moving

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/eventually"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
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

	// command is what a release runs that has commands, with its work at the end.
	command  func(p plan, work []string) []string
	holdfast string // the program
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

// gatherCommands makes a fleet whose members run commands, and builds the command holdfast.
func gatherCommands(t *testing.T) *fleet {
	t.Helper()
	holdfast := filepath.Join(t.TempDir(), "holdfast") // removed when the members have ended
	build := exec.Command("go", "-C", "../../cmd/holdfast", "build", "-o", holdfast, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	f := gather(t, "")
	f.holdfast, f.plan.Once = holdfast, true
	return f
}

// under returns work under the lock of holdfast.
func (f *fleet) under(work []string) []string {
	return append([]string{f.holdfast, "run", "-q", "--ttl", newTTL.String(), "order:42", "--"}, work...)
}

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

func (f *fleet) process(p plan, argv ...string) *exec.Cmd {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // it may not be the goroutine of the test
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), workerEnv+"="+string(text), "REDIS_URL=redis://"+f.plan.Redis)
	cmd.Stderr = os.Stderr
	return cmd
}

func (f *fleet) start(release string) *member {
	f.Helper()
	return f.serve(f.next(release), os.Args[0])
}

// serve starts a process that ends when its input does.
func (f *fleet) serve(p plan, argv ...string) *member {
	f.Helper()
	cmd := f.process(p, argv...)
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	fatal.If(f, err)
	return f.join(p, func(kill bool) error {
		if kill {
			_ = cmd.Process.Kill()
		}
		in.Close()
		return cmd.Wait()
	})
}

// run starts the command of a release once.
func (f *fleet) run(p plan) *exec.Cmd {
	cmd := f.process(p, f.command(p, []string{os.Args[0]})...)
	if err := cmd.Start(); err != nil {
		panic(err) // it may not be the goroutine of the test
	}
	return cmd
}

// loop returns a member that runs the command of a release again and again. If it is killed, its
// command is killed.
func (f *fleet) loop(release string) *member {
	p := f.next(release)
	over, done := make(chan bool, 1), make(chan struct{})
	go func() {
		defer close(done)
		for {
			cmd, ended := f.run(p), make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			select {
			case kill := <-over:
				if kill {
					_ = cmd.Process.Kill()
				}
				<-ended
				return
			case err := <-ended:
				if err != nil {
					f.Errorf("%s (%s): %v", p.Worker, p.Release, err)
				}
			}
		}
	}()
	return f.join(p, func(kill bool) error {
		over <- kill
		<-done
		return nil
	})
}

// once returns a member that runs the command of a release once. If it is killed, the command that
// it runs is killed, and nothing that this one has started.
func (f *fleet) once(release string) (*member, *exec.Cmd) {
	p := f.next(release)
	cmd := f.run(p)
	return f.join(p, func(kill bool) error {
		if kill {
			_ = cmd.Process.Kill()
		}
		return cmd.Wait()
	}), cmd
}

// end lets a process end, or kills it with kill -9, and waits for it.
func (f *fleet) end(m *member, kill bool) {
	f.Helper()
	f.live = slices.DeleteFunc(slices.Clone(f.live), func(other *member) bool { return other == m })
	if err := m.end(kill); err != nil && !kill {
		f.Errorf("%s (%s): %v", m.name, m.release, err)
	}
}

func (f *fleet) await(what string, holds func() bool) {
	f.Helper()
	eventually.Must(f, patience, what, holds)
}

// goesOn waits until each of the processes, or of all, has been inside often enough.
func (f *fleet) goesOn(members ...*member) {
	f.Helper()
	if len(members) == 0 {
		members = f.live
	}
	wanted := map[*member]int{}
	for _, m := range members {
		wanted[m] = f.visitsOf(m.name) + f.often
	}
	for m, n := range wanted {
		f.await(fmt.Sprintf("%s (%s) gets in", m.name, m.release), func() bool { return f.visitsOf(m.name) >= n })
	}
}

// staysOut fails the test if one of the members was inside.
func (f *fleet) staysOut(members ...*member) {
	f.Helper()
	for _, m := range members {
		if n := f.visitsOf(m.name); n > 0 {
			f.Errorf("%s (%s) was inside %d times meanwhile", m.name, m.release, n)
		}
	}
}

// killed kills a member, and returns how long it took until all others were inside often enough.
func (f *fleet) killed(victim *member) time.Duration {
	f.Helper()
	began := time.Now()
	f.end(victim, true)
	f.goesOn()
	took := time.Since(began).Round(100 * time.Millisecond)
	f.isExclusive(f.T)
	f.Logf("killed: all others were inside %d times %v later; overlaps: %d", f.often, took, f.overlapped())
	return took
}

// roll replaces n members of N-1 by N, these by N+1, and goes back again. Every other one is
// killed.
func (f *fleet) roll(n int, start func(release string) *member) {
	f.Helper()
	for range n {
		start(before)
	}
	f.goesOn()
	killed := 0
	for step, release := range []string{between, after, between, before} {
		for i, m := range f.live[:n:n] {
			start(release)
			f.goesOn() // beside all others
			kill := (i+step)%2 == 0
			if kill {
				killed++
			}
			f.end(m, kill)
		}
		f.goesOn()
	}
	neighbours := [][2]string{{before, between}, {between, before}, {between, after}, {after, between}}
	for _, next := range neighbours {
		if f.passed[next] == 0 {
			f.Errorf("none of %s was inside right after one of %s", next[1], next[0])
		}
		f.Logf("%s to %s: %d times", next[0], next[1], f.passed[next])
	}
	f.isExclusive(f.T)
	f.Logf("%d visits of %d members, %d of them killed; overlaps: %d", f.total(), f.count, killed, f.overlapped())
}

// startServer runs a server until the test is over, and waits until it is ready.
func startServer(t *testing.T, ready func(context.Context) error, program string, args ...string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	fatal.If(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		err := ready(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s does not answer: %v", program, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// freePort returns a port of the loopback that is free now.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	fatal.If(t, err)
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}
