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
	"strings"
	"sync"
	"time"

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
