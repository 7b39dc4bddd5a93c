package redisserver

import (
	"os"
	"os/exec"
	"runtime"
)

// A process is one running program; done is closed when it has ended and was waited for.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// spawn starts the program, with some more environment. The starting thread lives as long as the
// child: on Linux the system kills the child when that thread ends, not when the process does.
func spawn(program string, args, env []string) (*process, error) {
	p := &process{cmd: exec.Command(program, args...), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.SysProcAttr = killWithStarter()
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.done)
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // killed, always
		}
	}()
	return p, <-started
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// kill ends the process and waits until it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.done
}
