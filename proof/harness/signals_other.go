//go:build !unix

package harness

import (
	"errors"
	"os"
)

// Freeze stops a process, where the system can.
func Freeze(*os.Process) error { return errors.ErrUnsupported }

// Thaw lets a process go on.
func Thaw(*os.Process) error { return errors.ErrUnsupported }

// Abort ends a process.
func Abort(p *os.Process) { _ = p.Kill() }
