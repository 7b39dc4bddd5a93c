package hold

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/show"
)

// acquireTTL is the TTL of a ticket if no flag says otherwise. No process renews it, and a quorum
// takes no longer one.
const acquireTTL = 5 * time.Minute

// Acquire takes a lock and leaves it to a ticket.
type Acquire struct {
	request
	File  string // for the ticket; "" or "-": standard output
	JSON  bool
	Keep  time.Duration // of the place, when the wait is over; 0: it is left
	Label string
	TTL   time.Duration
	Out   io.Writer
}

// Validate refuses bad arguments. It sends nothing and shows no password.
func (a *Acquire) Validate() error {
	var c cli.Checklist
	a.choice.check(&c)
	cli.CheckTTL(&c, &a.Connection, a.TTL)
	c.Check(a.Keep == 0 || a.Keep >= leastKeep && a.Keep <= mostKeep, "--keep-place %v: it must be %v to %v", a.Keep,
		leastKeep, mostKeep)
	c.Check(a.Keep == 0 || !a.toOutput(), "--keep-place: it needs --ticket FILE, where the place is kept")
	c.Check(a.Keep == 0 || len(a.Names) == 1, "--keep-place and %d names: several names have no place", len(a.Names))
	c.Check(len(a.Label) <= cli.MaxText, "--label of %d bytes: it must have at most %d", len(a.Label), cli.MaxText)
	a.waitOptions.check(&c)
	a.logOptions.check(&c)
	a.Connection.Check(&c)
	return c.Err()
}

func (a *Acquire) toOutput() bool { return a.File == "" || a.File == "-" }

// outputName is what goes to standard output.
func (a *Acquire) outputName() string {
	if a.toOutput() {
		return "ticket"
	}
	return "object"
}

// Run takes the lock, writes its ticket, and leaves nothing running.
func (a *Acquire) Run(ctx context.Context) error {
	if err := a.Validate(); err != nil {
		return err
	}
	return a.withNotices(func(notices *notices) error { return a.run(ctx, notices) })
}

func (a *Acquire) run(ctx context.Context, notices *notices) error {
	if (a.toOutput() || a.JSON) && isClosed(a.Out) {
		return fmt.Errorf("the %s could not be written: standard output is closed", a.outputName())
	}
	file := ticketFile{a.File}
	if !a.toOutput() {
		if err := file.probe(); err != nil {
			return err
		}
	}
	client, end, err := a.NewClient(holdfast.Config{Label: a.label(), MaxTTL: cli.MostTTL,
		Observer: &outageObserver{notices: notices}})
	if err != nil {
		return err
	}
	defer end()
	began := time.Now()
	var lease *holdfast.Lease
	if a.Keep > 0 {
		lease, err = a.atPlace(ctx, client, began, file)
	} else {
		// With a min hold, a hand-over is confirmed for the whole TTL before it is told.
		h := a.newHandle(client, holdfast.WithTTL(a.TTL), holdfast.WithMinHold(time.Millisecond))
		lease, err = a.lease(ctx, client, h, false, notices, nil)
	}
	if err != nil {
		err = a.refusal(ctx, err)
		var busy *busyError
		if errors.As(err, &busy) && a.JSON {
			text, _ := json.Marshal(newRefusedAnswer(a.Names[0], busy))
			_, _ = fmt.Fprintf(a.Out, "%s\n", text) // the exit code tells it too
		}
		return err
	}
	notices.tell(a.grantRecord(lease, began))
	return a.deliverTicket(ctx, client, lease, file)
}

func (a *Acquire) label() string {
	if a.Label != "" {
		return a.Label
	}
	if a.Keep > 0 {
		return cli.Operator() // the hold says itself that it is a ticket
	}
	return show.TicketLabel + cli.Operator() // the process ends at once
}

// deliverTicket gives the lease to the ticket. A ticket that cannot be written gives the lock back.
func (a *Acquire) deliverTicket(ctx context.Context, client *holdfast.Client, lease *holdfast.Lease,
	file ticketFile) error {
	told := acquisition{Version: 1, Name: lease.Name(), Token: lease.Token(), Tokens: lease.Tokens(),
		TTL: a.TTL.Seconds()}
	ticket, err := lease.Detach()
	if err != nil {
		return err
	}
	what := "ticket"
	if a.toOutput() {
		told.Ticket = ticket
	} else {
		err = file.write(ticket)
	}
	switch {
	case err != nil:
	case a.JSON:
		text, _ := json.Marshal(told)
		what = a.outputName()
		_, err = fmt.Fprintf(a.Out, "%s\n", text)
	case a.toOutput():
		_, err = fmt.Fprintln(a.Out, ticket)
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("the %s could not be written: %w", what, err)
	if back := client.DiscardTicket(context.WithoutCancel(ctx), ticket); back != nil {
		return errors.Join(err, fmt.Errorf("%s is held for %v: %w", a.title(), a.TTL, back))
	}
	return err
}

// An acquisition is what --json prints.
type acquisition struct {
	Version int              `json:"version"`
	Name    string           `json:"name"`
	Token   int64            `json:"token"`
	Tokens  map[string]int64 `json:"tokens"`
	TTL     float64          `json:"ttl_seconds"`
	Ticket  holdfast.Ticket  `json:"ticket,omitempty"` // unless it is in the file
}

// A refusedAnswer is what --json prints if another holds the lock, or the wait was too long.
type refusedAnswer struct {
	Version int    `json:"version"`
	Name    string `json:"name"`
	Refused string `json:"refused"` // why, for people
	Token   int64  `json:"token,omitempty"`
	heldFacts
	Waited float64 `json:"waited_seconds"`
}

func newRefusedAnswer(name string, busy *busyError) refusedAnswer {
	r := refusedAnswer{Version: 1, Name: name, Refused: busy.text, heldFacts: newHeldFacts(busy.held),
		Waited: *secondsOf(busy.waited)}
	if busy.held != nil {
		r.Name, r.Token = busy.held.Name, busy.held.Token
	}
	return r
}

// refusal turns the reason why there is no lock into a text and an exit code.
func (a *Acquire) refusal(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if errors.As(err, new(*cli.UsageError)) {
		return err
	}
	refused := a.failureOrBusy(err, cli.ExitBusy)
	var busy *busyError
	var waited *holdfast.WaitError
	evicted := errors.As(err, &waited) && waited.Reason == holdfast.WaitEvicted
	if errors.As(refused, &busy) && a.Keep > 0 && !evicted {
		busy.text += "; the place is kept, and its ticket in " + a.File
	}
	return refused
}

func newAcquire() *cobra.Command {
	a := &Acquire{}
	cmd := &cobra.Command{
		Use:   "acquire [flags] NAME",
		Short: "Take a lock and print its ticket, for renew, release and check",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(a.Names) > 0 && len(args) > 0:
				return cli.Usagef("%q: --name has the names", args[0])
			case len(a.Names) > 0:
				return nil
			}
			if keep := cmd.Flags().Lookup("keep-place"); keep.Changed && len(args) == 2 {
				if _, err := cli.ParseDuration(args[0]); err == nil {
					return cli.Usagef("--keep-place %s: write --keep-place=%s, as the flag has a default", args[0], args[0])
				}
			}
			a.Names = []string{""}
			return cli.OneName(&a.Names[0])(cmd, args)
		},
		PreRun: func(cmd *cobra.Command, _ []string) {
			cli.OutliveReaders()
			a.Out, a.Err = cmd.OutOrStdout(), os.Stderr
		},
		RunE: cli.UntilSignal(a.Run),
	}
	a.AddNameFlags(cmd)
	flags := cmd.Flags()
	a.choice.flags(flags)
	a.waitOptions.flags(flags)
	cli.DurationVar(flags, &a.TTL, "ttl", "", acquireTTL, "how long the lock is held unless it is renewed; up to 24h")
	flags.StringVar(&a.File, "ticket", "", "write the ticket to `FILE`, and not to standard output")
	cli.DurationVar(flags, &a.Keep, "keep-place", "", 0, "keep the place for so long after the wait")
	flags.Lookup("keep-place").NoOptDefVal = "1m"
	flags.BoolVar(&a.JSON, "json", false, "print an object with the name, the token, the TTL and the ticket; or one that says who holds")
	flags.StringVar(&a.Label, "label", "", "name of the holder for other processes (default: ticket of user@host)")
	a.logOptions.flags(flags, "print how long the wait for the lock was")
	return cmd
}

// isClosed reports whether a standard output was closed when this process began. The runtime has
// opened the null device in its place, for reading too. A shell opens it for writing alone.
func isClosed(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	opened, err := f.Stat()
	null, failed := os.Stat(os.DevNull)
	if err != nil || failed != nil || !os.SameFile(opened, null) {
		return false
	}
	_, err = f.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}

// The limits of the library for a kept place.
const (
	leastKeep = time.Second
	mostKeep  = 10 * time.Minute
)

// atPlace waits at the place of the file's ticket, or of a new one that it writes there.
func (a *Acquire) atPlace(ctx context.Context, client *holdfast.Client, began time.Time,
	file ticketFile) (*holdfast.Lease, error) {
	lease, err := a.atFormerPlace(ctx, client, began)
	if !errors.Is(err, errNoPlace) {
		return lease, err
	}
	h := a.newHandle(client, holdfast.WithTTL(a.TTL))
	ticket, err := firstTry(ctx, began,
		func(ctx context.Context) (holdfast.Ticket, error) { return h.place(ctx, a.Keep) })
	if err != nil {
		return nil, err
	}
	if err = file.write(ticket); err != nil {
		return nil, errors.Join(err, client.DiscardTicket(context.WithoutCancel(ctx), ticket))
	}
	return a.attach(ctx, client, ticket, began)
}

// attach waits at a place. It asks the server at least once, however short the wait is: the place
// of a free name holds it.
func (a *Acquire) attach(ctx context.Context, client *holdfast.Client, ticket holdfast.Ticket,
	began time.Time) (*holdfast.Lease, error) {
	const least, forEver = 100 * time.Millisecond, math.MaxInt64
	for {
		limit := time.Duration(forEver)
		if a.Nonblock || a.Wait > 0 {
			limit = max(a.Wait-time.Since(began), least)
		}
		bounded, cancel := context.WithTimeout(ctx, limit)
		lease, err := client.Attach(bounded, ticket)
		cancel()
		asked := !errors.Is(err, holdfast.ErrUnavailable) || errors.As(err, new(*holdfast.StoreError))
		if asked || ctx.Err() != nil || time.Since(began) > a.Wait+firstAnswer {
			return lease, err
		}
	}
}

// errNoPlace says that the file has no place that is kept.
var errNoPlace = errors.New("no place is kept")

// atFormerPlace waits at the place of the file's ticket.
func (a *Acquire) atFormerPlace(ctx context.Context, client *holdfast.Client, began time.Time) (*holdfast.Lease,
	error) {
	if info, err := os.Stat(a.File); errors.Is(err, os.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil, errNoPlace
	}
	ticket, err := readTicket(a.File, nil)
	if err != nil {
		return nil, err
	}
	if !ticket.IsPlace() {
		err := client.CheckTicket(ctx, ticket)
		switch {
		case err == nil:
			return nil, cli.Usagef("--ticket %s: it has the ticket of a lease that is held: release it before", a.File)
		case errors.Is(err, holdfast.ErrTicket):
			return nil, errNoPlace
		case errors.As(err, new(*holdfast.ArgumentError)):
			return nil, cli.Usagef("--ticket %s: the file is there, and has no ticket", a.File)
		}
		return nil, err
	}
	lease, err := a.attach(ctx, client, ticket, began)
	var waited *holdfast.WaitError
	switch {
	case errors.Is(err, holdfast.ErrTicket):
		return nil, errNoPlace
	case err == nil && !slices.Contains(a.Names, lease.Name()):
		err = cli.Usagef("--ticket %s: it has a place of %q", a.File, lease.Name())
		return nil, errors.Join(err, lease.Release())
	case errors.As(err, &waited) && !slices.Contains(a.Names, waited.Name):
		return nil, cli.Usagef("--ticket %s: it has a place of %q", a.File, waited.Name)
	}
	return lease, err
}
