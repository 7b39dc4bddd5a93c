package moving

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// A shop runs commands under locks: the old command, and holdfast run.
type shop struct {
	*fleet
	holdfast string // the program
	// command is what a release runs, with its work at the end.
	command func(p plan, work []string) []string
}

// openShop builds the command holdfast, and makes a fleet without a member.
func openShop(t *testing.T) *shop {
	t.Helper()
	holdfast := filepath.Join(t.TempDir(), "holdfast") // removed when the members have ended
	if out, err := exec.Command("go", "-C", "../../cmd/holdfast", "build", "-o", holdfast,
		".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s := &shop{fleet: gather(t, ""), holdfast: holdfast}
	s.plan.Once = true
	return s
}

// under returns work under the lock of holdfast.
func (s *shop) under(work []string) []string {
	return append([]string{s.holdfast, "run", "-q", "--ttl", newTTL.String(), "order:42", "--"}, work...)
}

// run starts the command of a release once.
func (s *shop) run(p plan) *exec.Cmd {
	s.Helper()
	argv := s.command(p, []string{os.Args[0]})
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), p.environ(), "REDIS_URL=redis://"+s.plan.Redis)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		panic(err) // not in the goroutine of the test
	}
	return cmd
}

// loop returns a member that runs the command of a release again and again. If it is killed, its
// command is killed.
func (s *shop) loop(release string) *member {
	p := s.next(release)
	over, done := make(chan bool, 1), make(chan struct{})
	go func() {
		defer close(done)
		for {
			cmd := s.run(p)
			ended := make(chan error, 1)
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
					s.Errorf("%s (%s): %v", p.Worker, p.Release, err)
				}
			}
		}
	}()
	var once sync.Once
	return s.join(p, func(kill bool) error {
		once.Do(func() { over <- kill })
		<-done
		return nil
	})
}

// once returns a member that runs the command of a release once. If it is killed, the command that
// it runs is killed, and nothing that this one has started.
func (s *shop) once(release string) (*member, *exec.Cmd) {
	p := s.next(release)
	cmd := s.run(p)
	return s.join(p, func(kill bool) error {
		if kill {
			_ = cmd.Process.Kill()
		}
		return cmd.Wait()
	}), cmd
}

// reaches waits until a member is at a mark.
func (s *shop) reaches(what string, reached <-chan struct{}) {
	s.Helper()
	select {
	case <-reached:
	case <-time.After(patience):
		s.Fatal("never: ", what)
	}
}
