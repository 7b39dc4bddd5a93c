package redisserver

import "syscall"

// killWithStarter has the kernel kill the child when the thread that started it ends, so that no
// server outlives a test that was killed. The starter must keep that thread: spawn does.
func killWithStarter() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
