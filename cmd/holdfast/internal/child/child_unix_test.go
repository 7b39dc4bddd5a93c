//go:build unix

package child

import (
	"io"
	"os"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// start runs a shell script, and returns after the shell was waited for. The file has the output,
// and ends when the last process that can write to it has ended.
func start(t *testing.T, script string) (*Child, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	fatal.If(t, err)
	t.Cleanup(func() { r.Close() })
	c, err := Start(Spec{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Env: os.Environ(),
		Files: []*os.File{nil, w, nil}})
	w.Close()
	fatal.If(t, err)
	select {
	case <-c.Done():
	case <-time.After(time.Minute):
		c.Kill()
		t.Fatal("the shell does not end")
	}
	return c, r
}

// Left and Kill find the children of a command that has ended, and no other process.
func TestLeft(t *testing.T) {
	if c, _ := start(t, "exit 0"); c.Left() {
		t.Fatal("something is left of a command that started nothing") // Kill could end another group
	}
	c, out := start(t, `trap "" TERM; sleep 60 & exit 3`)
	if c.Code() != 3 {
		t.Errorf("code %d, want 3", c.Code())
	}
	if !c.Left() {
		t.Fatal("nothing is left of a command that started something")
	}
	c.Kill()
	fatal.If(t, out.SetReadDeadline(time.Now().Add(30*time.Second)))
	if _, err := io.ReadAll(out); err != nil {
		t.Errorf("a child lives after Kill: %v", err)
	}
}
