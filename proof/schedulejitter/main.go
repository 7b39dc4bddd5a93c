package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/proof/schedulejitter/pause"
)

// A request is what a command line asks for.
type request struct {
	root string // of the repository
	pack string // a directory of it
	test string // a regular expression

	seed uint64
	runs int
	race bool
}

func main() {
	r := request{root: ".."}
	flag.Uint64Var(&r.seed, "seed", 1, "of the first run; each has the next")
	flag.IntVar(&r.runs, "runs", 10, "how often to run the tests")
	flag.BoolVar(&r.race, "race", false, "with the race detector")
	flag.Parse()
	if r.pack, r.test = flag.Arg(0), flag.Arg(1); r.pack == "" || flag.NArg() > 2 || r.runs < 1 {
		fmt.Fprintln(os.Stderr, "schedulejitter: usage: schedulejitter [-seed n] [-runs n] [-race] PACKAGE [REGEXP], with at least one run")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := r.run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "schedulejitter:", err)
		os.Exit(1)
	}
}

// run runs the tests again and again, and prints of each run how it went, with all that a failed
// one printed.
func (r request) run(ctx context.Context, to io.Writer) error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("it holds goroutines up on linux only, and this is %s", runtime.GOOS)
	}
	dir, err := os.MkdirTemp("", "holdfast-jitter-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary, err := r.compile(ctx, dir)
	if err != nil {
		return err
	}
	var failed []string
	for seed := r.seed; seed < r.seed+uint64(r.runs); seed++ {
		began := time.Now()
		test := exec.CommandContext(ctx, binary, "-test.run="+r.test, "-test.timeout=20m")
		test.Dir = filepath.Join(r.root, r.pack)
		test.Env = append(os.Environ(), fmt.Sprintf("%s=%d", pause.Seed, seed))
		output, err := test.CombinedOutput()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		took := time.Since(began).Round(time.Second)
		switch {
		case err != nil:
			failed = append(failed, fmt.Sprint(seed))
			fmt.Fprintf(to, "seed %d: failed, in %v: %v\n%s\n", seed, took, err, output)
		case bytes.Contains(output, []byte("no tests to run")):
			return fmt.Errorf("%s has no test %q", r.pack, r.test)
		default:
			fmt.Fprintf(to, "seed %d: passed, in %v\n", seed, took)
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d of %d runs failed, with seeds %s", len(failed), r.runs, strings.Join(failed, ", "))
	}
	return nil
}

// compile makes the tests, of sources that hold goroutines up.
func (r request) compile(ctx context.Context, dir string) (binary string, err error) {
	root, err := filepath.Abs(r.root)
	if err != nil {
		return "", err
	}
	file, err := overlay(root, dir)
	if err != nil {
		return "", err
	}
	binary = filepath.Join(dir, "jitter.test")
	args := []string{"test", "-c", "-vet=off", "-overlay", file, "-o", binary}
	if r.race {
		args = append(args, "-race")
	}
	build := exec.CommandContext(ctx, "go", append(args, ".")...)
	build.Dir = filepath.Join(root, r.pack)
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", r.pack, err, output)
	}
	if _, err := os.Stat(binary); errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("%s has no tests", r.pack)
	}
	return binary, nil
}
