package server

import (
	"os/exec"
	"syscall"
)

// apart keeps a console's Ctrl-C from a process: the server must be there until those who use it have left.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
