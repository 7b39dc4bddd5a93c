package hold

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
)

// How a command logs.
const (
	logText = "text"
	logJSON = "json"
)

// A logOptions says what a command prints of what it does, on standard error.
type logOptions struct {
	Log     string
	Quiet   bool
	Verbose bool
}

// flags adds the flags. All commands that can find a lock held have them. Verbose says what -v
// prints.
func (r *logOptions) flags(flags *pflag.FlagSet, verbose string) {
	r.quietFlag(flags)
	r.logFlags(flags, verbose)
}

// logFlags adds the flags of a command that never finds another first.
func (r *logOptions) logFlags(flags *pflag.FlagSet, verbose string) {
	flags.BoolVarP(&r.Verbose, "verbose", "v", false, verbose)
	flags.StringVar(&r.Log, "log", logText,
		"`FORMAT`: text, or json for a line of JSON on standard error for all that happens")
}

// quietFlag adds the one flag of a command that logs nothing.
func (r *logOptions) quietFlag(flags *pflag.FlagSet) {
	r.Log = logText
	flags.BoolVarP(&r.Quiet, "quiet", "q", false,
		"print nothing if another is first or the wait is over: the exit code says so")
}

// check notes what is wrong with the flags.
func (r *logOptions) check(list *cli.Checklist) {
	list.Check(!r.Quiet || !r.Verbose, "--quiet and --verbose: only one of them can be given")
	list.Check(r.Log == logText || r.Log == logJSON, "--log %q: it must be text or json", r.Log)
}

// A record is a line of --log json. Times are in seconds.
type record struct {
	Time  string   `json:"ts"`
	Event string   `json:"event"`
	Name  string   `json:"name,omitempty"`
	Names []string `json:"names,omitempty"` // of a group
	Token int64    `json:"token,omitempty"` // of the lease; else that of the holder
	heldFacts
	Waited *float64 `json:"waited,omitempty"`
	Held   *float64 `json:"held,omitempty"`
	Code   *int     `json:"code,omitempty"` // the exit code of the command that was run, or of this program
	Text   string   `json:"text,omitempty"`
}

// The events of records.
const (
	eventNotice   = "notice"   // something that a person may want to know
	eventWaiting  = "waiting"  // another holds the lock
	eventGranted  = "granted"  // this process holds
	eventReleased = "released" // it gave the lock back
	eventRefused  = "refused"  // another holds the lock, or the wait was too long; nothing was run
	eventLost     = "lost"     // the lock was lost, or its end was near
	eventFailed   = "failed"   // all other ends
)

// newRecord is a record of an event about what is held.
func (c *choice) newRecord(event string) record {
	r := record{Event: event}
	if len(c.Names) > 0 {
		r.Name = c.Names[0]
	}
	if len(c.Names) > 1 {
		r.Names = c.Names
	}
	return r
}

func (c *choice) grantRecord(lease *holdfast.Lease, began time.Time) record {
	r, waited := c.newRecord(eventGranted), time.Since(began)
	r.Token, r.Waited = lease.Token(), secondsOf(waited)
	r.Text = fmt.Sprintf("got %s after %v, token %d", c.title(), roundTime(waited), lease.Token())
	return r
}

// waitRecord tells that another holds.
func (c *choice) waitRecord(held *holdfast.HeldError) record {
	r := c.newRecord(eventWaiting)
	r.setHeld(held)
	r.Text = fmt.Sprintf("waiting for %q, %s, %d before", held.Name, keptBy(held), held.Waiters)
	return r
}

func (r *record) setHeld(held *holdfast.HeldError) {
	r.heldFacts = newHeldFacts(held)
	if held != nil {
		r.Token = held.Token
	}
}

func secondsOf(d time.Duration) *float64 {
	s := float64(d.Milliseconds()) / 1000
	return &s
}

func (r record) line() string {
	r.Time = time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
	text, _ := json.Marshal(r)
	return string(text) + "\n"
}

// A busyError says that another holds the lock.
type busyError struct {
	text   string
	held   *holdfast.HeldError // nil: not known
	waited time.Duration
}

func (e *busyError) Error() string { return e.text }

// reportEnd reports how a command ended. It returns the error for the exit code, with the text that
// is still to be printed.
func (r *logOptions) reportEnd(n *notices, c *choice, err error) error {
	if err == nil {
		return nil
	}
	code := cli.ExitCode(err)
	var ended *cli.ExitError
	if errors.As(err, &ended) && ended.Err == nil {
		return err // the command has its own code
	}
	var busy *busyError
	is := errors.As(err, &busy)
	if r.Log == logJSON {
		line := c.newRecord(eventFailed)
		line.Code, line.Text = &code, cli.Trim(err.Error())
		switch {
		case is:
			line.Event, line.Waited = eventRefused, secondsOf(busy.waited)
			line.setHeld(busy.held)
		case code == cli.ExitLost, errors.Is(err, holdfast.ErrLost):
			line.Event = eventLost
		}
		n.tell(line)
		return cli.Exit(code)
	}
	if is && r.Quiet {
		return cli.Exit(code)
	}
	return err
}
