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

// Keep runs a program and kills it when stdin ends. It is the whole work of a small process between a command and
// the server it started: when the command dies, however it dies, the system closes the pipe, and the server goes. The
// server itself would not notice. It returns when the program is gone.
func Keep(stdin io.Reader, path string, args ...string) error {
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", path, err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		_ = cmd.Process.Kill() // it has nothing to save
	}()
	return cmd.Wait()
}

// stopper closes the keeper's stdin and waits for it; the keeper ends after the server.
func stopper(keeper *exec.Cmd, stdin, stdout io.Closer, drained <-chan struct{}) func() error {
	return sync.OnceValue(func() error {
		_ = stdin.Close()
		late := time.AfterFunc(5*time.Second, func() {
			_ = keeper.Process.Kill()
			_ = stdout.Close() // the server holds it open too, if it is still there
		})
		<-drained
		stopped := late.Stop()
		var exit *exec.ExitError
		if err := keeper.Wait(); err != nil && !errors.As(err, &exit) {
			return fmt.Errorf("stopping the server: %w", err)
		}
		if !stopped {
			return errors.New("stopping the server: it did not end in 5s")
		}
		return nil // the keeper's exit code tells that the server was killed, which is what was asked for
	})
}
