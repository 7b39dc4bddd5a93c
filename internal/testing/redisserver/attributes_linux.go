package redisserver

import "syscall"

// attributes makes the kernel kill the server when its starter is gone.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
