//go:build !unix

package lottery

import (
	"errors"
	"os"
)

// canStop tells that processes can be stopped and continued here.
const canStop = false

func stopProcess(*os.Process) error     { return errors.ErrUnsupported }
func continueProcess(*os.Process) error { return errors.ErrUnsupported }
