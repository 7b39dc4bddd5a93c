package hold

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
)

// Validate refuses bad arguments, and names each with its value. It sends nothing and shows no
// password.
func (r *Run) Validate() error {
	var c cli.Checklist
	check := c.Check
	r.choice.check(&c)
	cli.CheckTTL(&c, &r.Connection, r.TTL)
	check(len(r.Command) > 0 && r.Command[0] != "", "no command")
	check(r.MaxHold == 0 || r.MaxHold >= cli.LeastTTL, "--max-hold %v: it must be at least %v", r.MaxHold, cli.LeastTTL)
	check(r.MinHold >= 0 && r.MinHold <= cli.MostTTL, "--min-hold %v: it must be 0 to %v", r.MinHold, cli.MostTTL)
	check(r.MaxHold <= 0 || r.MinHold <= r.MaxHold, "--max-hold %v: it must not be below --min-hold %v", r.MaxHold,
		r.MinHold)
	check(r.Grace >= 0, "--grace %v: it must not be negative", r.Grace)
	check(r.Conflict >= 0 && r.Conflict <= 255, "--conflict-exit-code %d: it must be 0 to 255", r.Conflict)
	check(slices.Contains([]string{onLostKill, onLostTerm, onLostIgnore}, r.OnLost),
		"--on-lost %q: it must be kill, term or ignore", r.OnLost)
	check(len(r.Owner) <= cli.MaxText, "--owner of %d bytes: it must have at most %d", len(r.Owner), cli.MaxText)
	check(len(r.Label) <= cli.MaxText, "--label of %d bytes: it must have at most %d", len(r.Label), cli.MaxText)
	check(!strings.ContainsRune(r.Owner, 0), "--owner %q: it must not contain a zero byte", r.Owner)
	if r.IsQuorum() {
		check(r.MinHold <= server.QuorumTTL, "--min-hold %v: on a quorum it must be at most %v", r.MinHold,
			server.QuorumTTL)
	}
	check(r.Owner == "" || r.Slots == 0, "--owner and --slots: only one of them can be given, as the holders of slots do not exclude each other")
	check(r.OnWanted == "" || wantedSignals[r.OnWanted] != nil, "--on-wanted %q: it must be %s", r.OnWanted,
		strings.Join(wantedNames(), ", "))
	check(r.OnWanted == "" || r.Slots == 0, "--on-wanted and --slots: only one of them can be given, as any slot will do")
	check(r.OnWanted == "" || !r.IsQuorum(), "--on-wanted: no master of a quorum knows who waits")
	check(r.Replace >= 0, "--replace %v: it must not be negative", r.Replace)
	check(r.Replace == 0 || r.Slots == 0 && !r.Shared, "--replace: it needs a lock that one holds alone, so neither --slots nor --shared")
	check(r.Replace == 0 || !r.Nonblock, "--replace and --nonblock: only one of them can be given, as the holder is given time")
	check(r.Replace == 0 || !r.IsQuorum(), "--replace: no master of a quorum knows whom to ask")
	r.waitOptions.check(&c)
	r.logOptions.check(&c)
	r.Connection.Check(&c)
	return c.Err()
}

// wantedNames are the signals that --on-wanted may name.
func wantedNames() []string { return slices.Sorted(maps.Keys(wantedSignals)) }

// lookUp finds a program as a shell does, before the wait for the lock.
func lookUp(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path, nil
	case errors.Is(err, exec.ErrDot):
		return "", cli.Exitf(cli.ExitNotFound, "%s is in the current directory, which the PATH names: write %s", name,
			filepath.Join(".", name))
	case errors.Is(err, exec.ErrNotFound) && !strings.ContainsRune(name, filepath.Separator):
		for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
			if info, err := os.Stat(filepath.Join(dir, name)); err == nil && !info.IsDir() {
				return "", cli.Exitf(cli.ExitNotRunnable, "%s may not be run", filepath.Join(dir, name))
			}
		}
		return "", cli.Exitf(cli.ExitNotFound, "%s: no such program on the PATH", name)
	case errors.Is(err, os.ErrNotExist):
		return "", cli.Exitf(cli.ExitNotFound, "%s: no such program", name)
	}
	var broken *exec.Error
	if errors.As(err, &broken) {
		err = broken.Err
	}
	return "", cli.Exitf(cli.ExitNotRunnable, "%s may not be run: %w", name, err)
}
