package main

import (
	"os"
	"syscall"
	"time"
	"unsafe"
)

// mapBoard maps a board for as long as the process lasts.
func mapBoard(f *os.File) (*board, error) {
	m, err := syscall.CreateFileMapping(syscall.Handle(f.Fd()), nil, syscall.PAGE_READWRITE, 0, uint32(boardSize), nil)
	if err != nil {
		return nil, os.NewSyscallError("CreateFileMapping", err)
	}
	defer syscall.CloseHandle(m) // the view keeps the mapping alive
	addr, err := syscall.MapViewOfFile(m, syscall.FILE_MAP_READ|syscall.FILE_MAP_WRITE, 0, 0, uintptr(boardSize))
	if err != nil {
		return nil, os.NewSyscallError("MapViewOfFile", err)
	}
	// The address is no Go memory, which is what the vet check for such conversions is about.
	return *(**board)(unsafe.Pointer(&addr)), nil
}

// cpuTime returns how long this process has run on the CPUs.
func cpuTime() time.Duration {
	var created, exited, kernel, user syscall.Filetime
	self, err := syscall.GetCurrentProcess()
	if err != nil || syscall.GetProcessTimes(self, &created, &exited, &kernel, &user) != nil {
		return 0
	}
	ticks := func(f syscall.Filetime) int64 { return int64(f.HighDateTime)<<32 | int64(f.LowDateTime) }
	return time.Duration(100 * (ticks(kernel) + ticks(user)))
}
