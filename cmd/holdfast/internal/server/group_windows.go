package server

import (
	"os/exec"
	"syscall"
)

// setGroup keeps Ctrl-C from a process: the server must run until its clients have ended.
func setGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
