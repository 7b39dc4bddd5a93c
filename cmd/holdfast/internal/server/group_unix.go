//go:build unix

package server

import (
	"os/exec"
	"syscall"
)

// apart keeps a terminal's Ctrl-C from a process: the server must be there until those who use it have left.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
