package database

import (
	"os"
	"syscall"
)

// attributes make a child nobody's if this process is root's. The kernel sends the signal when the
// child's starter is gone.
func attributes(end os.Signal) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Pdeathsig: end.(syscall.Signal)}
	if os.Getuid() == 0 {
		attr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	return attr
}

const (
	nobody = 65534
	quit   = syscall.SIGQUIT // PostgreSQL: all processes end at once
)

// give makes a file nobody's if this process is root's.
func give(path string) error {
	if os.Getuid() != 0 {
		return nil
	}
	return os.Chown(path, nobody, nobody)
}
