//go:build !unix

package main

import (
	"errors"
	"os"
	"os/exec"
)

func ownGroup(*exec.Cmd) {}

func interruptGroup(*os.Process) error { return errors.ErrUnsupported }
