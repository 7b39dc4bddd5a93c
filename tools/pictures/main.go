// Command pictures makes the pictures of terminals in docs/: the demo and "holdfast top", as they
// really run, each on a terminal of tmux. The screen of the terminal becomes an SVG: text in the
// reader's own fixed-width font, on a dark ground that looks the same on a light and a dark page.
//
//	go run ./tools/pictures DIRECTORY
//
// The pictures differ from run to run by times and tokens. "make pictures" runs this. The drawing
// of a lease is kept by hand: a test of internal/engine compares its times. The pictures of the
// dashboard come from package proof/dashboard.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: pictures DIRECTORY")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := run(ctx, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

// run writes the pictures into a directory. Nothing that it started is left then.
func run(ctx context.Context, into string) error {
	bin, err := os.MkdirTemp("", "pic") // short: the path of a socket has at most 100 bytes
	if err != nil {
		return err
	}
	defer os.RemoveAll(bin)
	build := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(bin, "holdfast"),
		"github.com/holdfast-go/holdfast/cmd/holdfast")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return err
	}
	return errors.Join(demo(ctx, bin, into), top(ctx, bin, into))
}

// demo takes the lottery at the moment at which its holder is dead and its lease is not over.
func demo(ctx context.Context, bin, into string) error {
	return takePicture(ctx, bin, "", 24, "holdfast demo --embedded",
		`is killed; its lease is not over yet\n.* 1\.[0-4] s of`, "holdfast demo", filepath.Join(into, "demo.svg"))
}

// takePicture types a line on a terminal, and draws the first screen with a pattern into a file.
func takePicture(ctx context.Context, bin, url string, rows int, line, pattern, title, file string) (err error) {
	x, err := openTerminal(ctx, bin, 98, rows, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.close()) }()
	if err := x.enter(ctx, line); err != nil {
		return err
	}
	screen, err := x.until(ctx, pattern)
	if err != nil {
		return err
	}
	svg, err := drawScreen(title, screen)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, []byte(svg), 0o644)
}
