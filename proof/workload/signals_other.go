//go:build !unix

package workload

import (
	"errors"
	"os"
)

func freeze(*os.Process) error { return errors.ErrUnsupported }

func thaw(*os.Process) error { return errors.ErrUnsupported }

func abort(p *os.Process) { _ = p.Kill() }
