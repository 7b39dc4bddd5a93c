package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// A terminal is a session of tmux, with a shell in it.
type terminal struct {
	socket string
	env    []string
}

// openTerminal starts a terminal on which holdfast is the program in bin, and asks a server.
func openTerminal(ctx context.Context, bin string, columns, rows int, url string) (*terminal, error) {
	x := &terminal{socket: filepath.Join(bin, "s"),
		env: append(os.Environ(), "REDIS_URL="+url, "LC_ALL=C.UTF-8", "TERM=screen-256color",
			"TZ=UTC", "PS1=$ ", "ENV=", "TMUX=", "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))}
	_, err := x.do(ctx, "-u", "-f", os.DevNull, "new-session", "-d", "-x", strconv.Itoa(columns), "-y",
		strconv.Itoa(rows), "sh")
	if err == nil {
		_, err = x.do(ctx, "set", "-g", "status", "off")
	}
	return x, err
}

func (x *terminal) do(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "tmux", append([]string{"-S", x.socket}, args...)...)
	cmd.Env = x.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("tmux %q: %w: %s", args, err, out)
	}
	return string(out), nil
}

func (x *terminal) enter(ctx context.Context, line string) error {
	if _, err := x.do(ctx, "send-keys", "-l", line); err != nil {
		return err
	}
	_, err := x.do(ctx, "send-keys", "Enter")
	return err
}

// until waits until the terminal shows what a pattern says. It returns the screen, with the escape
// sequences of its colors.
func (x *terminal) until(ctx context.Context, pattern string) (string, error) {
	wanted := regexp.MustCompile(pattern)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		screen, err := x.do(ctx, "capture-pane", "-e", "-p")
		if err != nil {
			return "", err
		}
		plain := ansi.Strip(screen)
		if wanted.MatchString(plain) {
			return screen, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", fmt.Errorf("the terminal does not show %q, but\n%s", pattern, plain)
		}
	}
}

func (x *terminal) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err := x.do(ctx, "kill-server")
	return err
}
