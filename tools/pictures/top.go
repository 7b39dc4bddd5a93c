package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// cast are the commands of a small shop that hold and wait in the picture, in the order in which
// they begin; "then" is what a command runs that holds.
var cast = []string{
	"run --label web@eu-1/4711 order:42",
	"run --label web@eu-2/4720 order:42",
	"run --label batch@eu-2/812 order:42",
	"run --label web@eu-1/4711 order:57",
	"run --label web@eu-2/4720 order:58 then run --label web@eu-2/4720 order:57",
	"run --label cron@eu-3/77 --ttl 2m nightly-report",
	"elect --label cron@eu-3/77 scheduler",
	"elect --label batch@eu-2/812 scheduler",
	"run --label web@eu-1/4711 --shared config",
	"run --label web@eu-2/4720 --shared config",
	"run --label batch@eu-2/812 --shared config",
	"run --label cron@eu-3/77 --exclusive config",
	"run --label batch@eu-2/812 --slots 3 exports",
	"run --label web@eu-2/4720 --slots 3 exports",
	"run --label web@eu-1/4711 --slots 3 exports",
	"run --label cron@eu-3/77 --slots 3 exports",
}

// play starts a command of the cast, and returns when it holds or waits. It ends with ctx.
func play(ctx context.Context, ended *sync.WaitGroup, program, url, line string) error {
	line = strings.ReplaceAll(line, " then ", " -v --redis "+url+" -- "+program+" ")
	args := append(strings.Fields(line), "-v", "--redis", url, "--", "sleep", "600")
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if strings.Contains(lines.Text(), "got ") || strings.Contains(lines.Text(), "waiting for ") {
			ended.Go(func() {
				_, _ = io.Copy(io.Discard, stderr)
				_ = cmd.Wait()
			})
			return nil
		}
	}
	return errors.Join(fmt.Errorf("holdfast %s neither holds nor waits", line), cmd.Wait())
}

// top takes the list of "holdfast top", with names that are held and waited for.
func top(ctx context.Context, bin, into string) (err error) {
	server, err := redisserver.Run(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	program, url := filepath.Join(bin, "holdfast"), "redis://"+server.Addr()
	playing, stop := context.WithCancel(ctx)
	var ended sync.WaitGroup
	defer ended.Wait()
	defer stop()
	for _, line := range cast {
		if err := play(playing, &ended, program, url, line); err != nil {
			return err
		}
	}
	if err := exec.CommandContext(ctx, program, "latch", "set", "--redis", url, "migrated", "3").Run(); err != nil {
		return fmt.Errorf("latch set: %w", err)
	}
	return takePicture(ctx, bin, url, 14, "holdfast top", `(?s) 8 names.* HOLDER WAITS FOR.* 12s `, "holdfast top",
		filepath.Join(into, "top.svg"))
}

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
