//go:build unix

package main

import (
	"os"
	"syscall"
	"time"
	"unsafe"
)

// mapBoard maps a board for as long as the process lasts.
func mapBoard(f *os.File) (*board, error) {
	mem, err := syscall.Mmap(int(f.Fd()), 0, boardSize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	return (*board)(unsafe.Pointer(unsafe.SliceData(mem))), nil
}

// cpuTime returns how long this process has run on the CPUs.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
