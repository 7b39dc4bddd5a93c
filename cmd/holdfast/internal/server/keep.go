package server

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// Keep runs a program, kills it when stdin ends, and returns when the program has ended. It is the
// whole work of a process between a command and the server that the command started. However the
// command ends, the system closes the pipe, and the server ends. The server itself would not
// notice.
func Keep(stdin io.Reader, path string, args ...string) error {
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", path, err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		_ = cmd.Process.Kill() // the server has nothing to save
	}()
	return cmd.Wait()
}

// stopKeeper closes the keeper's stdin and waits for the keeper, which ends after the server.
func stopKeeper(keeper *exec.Cmd, stdin, stdout io.Closer, drained <-chan struct{}) func() error {
	return sync.OnceValue(func() error {
		_ = stdin.Close()
		late := time.AfterFunc(5*time.Second, func() {
			_ = keeper.Process.Kill()
			_ = stdout.Close() // a server that still runs keeps it open too
		})
		<-drained
		stopped := late.Stop()
		var exit *exec.ExitError
		if err := keeper.Wait(); err != nil && !errors.As(err, &exit) {
			return fmt.Errorf("stopping the server: %w", err)
		}
		if !stopped {
			return errors.New("stopping the server: it did not end within 5s")
		}
		return nil // the keeper's exit code says that the server was killed, as it was to be
	})
}
