package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/child"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
)

// What to do with the command when its lock is lost.
const (
	onLostKill   = "kill"   // ask it to end while there is trust left, then end it
	onLostTerm   = "term"   // ask, and leave it at that
	onLostIgnore = "ignore" // let it run
)

// The longest and shortest TTL, as the library has them.
const (
	leastTTL = 100 * time.Millisecond
	mostTTL  = 24 * time.Hour
	maxText  = 1 << 10
)

// Run is a command under a lock.
type Run struct {
	Command  []string // the program and its arguments
	Conflict int      // exit code when the lock is held by another
	Grace    time.Duration
	Label    string // empty: the command, host and process
	MaxHold  time.Duration
	MinHold  time.Duration
	Name     string // of the lock
	Nonblock bool
	OnLost   string
	Owner    string // empty: one of its own
	Prefix   string
	Redis    string // URL, of one server or of a quorum
	TLS      server.TLS
	TTL      time.Duration
	Verbose  bool
	Wait     time.Duration // 0: for ever

	In, Out, Err *os.File
}

// Run holds the lock while the command runs. An *exitError carries the command's own exit code, or why it did not run or
// had to end. Once it has returned the command is gone and the lock given back, as far as the server could be asked;
// else the lock is free when its TTL is over.
func (r *Run) Run(ctx context.Context) error {
	if err := r.Validate(); err != nil {
		return err
	}
	path, err := lookUp(r.Command[0])
	if err != nil {
		return err
	}
	voice := newVoice(r.Err)
	defer voice.close()
	signals := listen()
	defer signals.stop()
	client, end, err := server.Client(r.Redis, r.TLS, holdfast.Config{
		Label: r.label(), MaxTTL: mostTTL, Observer: &watcher{run: r, voice: voice}, Prefix: r.Prefix,
	})
	if err != nil {
		return &usageError{fmt.Errorf("--redis or REDIS_URL: %w", err)}
	}
	defer end()
	// Also what is given up, a place in the queue for instance, is given back before we end.
	defer client.Close()

	began := time.Now()
	lease, err := r.acquire(ctx, client, signals, voice)
	if err != nil {
		return r.refused(err)
	}
	r.verbose(voice, "got %q after %v, token %d", r.Name, round(time.Since(began)), lease.Token())
	return r.under(lease, path, signals, voice)
}

// under runs the command and gives the lock back when it has been waited for.
func (r *Run) under(lease *holdfast.Lease, path string, signals *signals, voice *voice) error {
	began := time.Now()
	c, err := child.Start(child.Spec{Path: path, Args: r.Command, Env: r.environ(lease), Files: []*os.File{r.In, r.Out, r.Err}})
	if err != nil {
		_ = lease.Release(context.Background())
		return &exitError{exitNotRunnable, fmt.Errorf("cannot run %s: %w", r.Command[0], err)}
	}
	g := &guard{child: c, lease: lease, signals: signals, voice: voice, name: r.Name, onLost: r.OnLost, ttl: r.ttl(), early: min(r.Grace, r.ttl()/3)}
	if r.MaxHold > 0 {
		g.maxEnd = began.Add(r.MaxHold)
	}
	lost := g.watch()
	err = lease.Release(context.Background())
	if lost == nil && errors.Is(err, holdfast.ErrLost) {
		lost = err
	}
	r.verbose(voice, "held %q for %v; the command ended with %d", r.Name, round(time.Since(began)), c.Code())
	switch {
	case lost != nil:
		return &exitError{exitLost, fmt.Errorf("%w; the command ended with %d", lost, c.Code())}
	case err != nil:
		voice.say("giving %q back: %v; it is free in %v at the latest", r.Name, err, r.ttl())
	}
	if c.Code() != 0 {
		return &exitError{code: c.Code()}
	}
	return nil
}

// ttl is what the lock outlives us.
func (r *Run) ttl() time.Duration {
	if r.MaxHold > 0 {
		return min(r.TTL, r.MaxHold)
	}
	return r.TTL
}

// label says who this is: the command, rather than ours.
func (r *Run) label() string {
	if r.Label != "" {
		return r.Label
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return fmt.Sprintf("%.200s@%.200s/%d", filepath.Base(r.Command[0]), host, os.Getpid())
}

// environ is what the command sees. Of an outer run it sees nothing, whose values would be wrong here.
func (r *Run) environ(lease *holdfast.Lease) []string {
	var env []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "HOLDFAST_NAME", "HOLDFAST_TOKEN", "HOLDFAST_OWNER", "HOLDFAST_TTL", "HOLDFAST_REDIS":
		default:
			env = append(env, v)
		}
	}
	return append(env,
		"HOLDFAST_NAME="+r.Name,
		fmt.Sprintf("HOLDFAST_TOKEN=%d", lease.Token()),
		"HOLDFAST_OWNER="+lease.Owner(),
		"HOLDFAST_TTL="+r.ttl().String(),
		"HOLDFAST_REDIS="+server.Open(r.Redis))
}

func (r *Run) verbose(voice *voice, format string, args ...any) {
	if r.Verbose {
		voice.say(format, args...)
	}
}

// round keeps durations readable.
func round(d time.Duration) time.Duration {
	if d > time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}
