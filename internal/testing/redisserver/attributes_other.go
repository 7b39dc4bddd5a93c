//go:build !linux

package redisserver

import "syscall"

// killWithStarter is for Linux alone: elsewhere a server may outlive a test that was killed.
func killWithStarter() *syscall.SysProcAttr { return nil }
