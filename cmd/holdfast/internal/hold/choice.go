package hold

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
)

// A choice says what a command holds: a name as a mutex, to read or to write it, some of its slots,
// or several names.
type choice struct {
	Names     []string
	Shared    bool
	Exclusive bool
	Slots     int64 // 0: a mutex
	Weight    int64

	slots *pflag.Flag // of Slots; nil: there are no flags
}

func (c *choice) flags(flags *pflag.FlagSet) {
	flags.StringArrayVar(&c.Names, "name", nil, "`NAME` to hold, once for each: all are held together, or none is")
	flags.BoolVarP(&c.Shared, "shared", "s", false,
		"hold NAME beside others with --shared, and beside none with --exclusive")
	flags.BoolVarP(&c.Exclusive, "exclusive", "x", false, "hold NAME alone, where others use --shared")
	flags.Int64Var(&c.Slots, "slots", 0, "let `N` hold NAME at a time; all must give the same number")
	c.slots = flags.Lookup("slots")
	flags.Int64Var(&c.Weight, "weight", 1, "how many of the --slots to take")
}

// check notes what is wrong with the flags.
func (c *choice) check(list *cli.Checklist) {
	for _, name := range c.Names {
		cli.CheckName(list, name)
		// The values of environment variables end at a zero byte.
		list.Check(!strings.ContainsRune(name, 0), "NAME %q: it must not contain a zero byte", name)
	}
	list.Check(!c.Shared || !c.Exclusive, "--shared and --exclusive: only one of them can be given")
	kinds := 0
	for _, given := range []bool{c.Shared || c.Exclusive, c.Slots != 0, len(c.Names) > 1} {
		if given {
			kinds++
		}
	}
	list.Check(kinds <= 1, "--shared or --exclusive, --slots, and several names: only one of these can be given")
	given := c.Slots != 0 || c.slots != nil && c.slots.Changed
	list.Check(!given || c.Slots > 0 && c.Slots <= 1<<31, "--slots %d: it must be 1 to %d", c.Slots, int64(1<<31))
	list.Check(c.Weight == 1 || c.Slots > 0, "--weight %d: it needs --slots", c.Weight)
	list.Check(c.Slots <= 0 || c.Weight >= 1 && c.Weight <= c.Slots, "--weight %d: it must be 1 to the %d of --slots",
		c.Weight, c.Slots)
}

// title is how texts name what is held.
func (c *choice) title() string {
	quoted := make([]string, len(c.Names))
	for i, name := range c.Names {
		quoted[i] = strconv.Quote(name)
	}
	return strings.Join(quoted, " and ")
}

// A handle is what a choice holds.
type handle struct {
	try, lock func(context.Context) (*holdfast.Lease, error)
	place     func(ctx context.Context, keep time.Duration) (holdfast.Ticket, error) // nil: none is kept
}

func (c *choice) newHandle(client *holdfast.Client, options ...holdfast.Option) handle {
	name := c.Names[0]
	switch {
	case len(c.Names) > 1:
		group := client.All(c.Names, options...)
		return handle{try: group.TryLock, lock: group.Lock}
	case c.Slots > 0:
		s := client.Semaphore(name, c.Slots, options...)
		weighed := func(acquire func(context.Context, int64) (*holdfast.Lease,
			error)) func(context.Context) (*holdfast.Lease, error) {
			return func(ctx context.Context) (*holdfast.Lease, error) {
				lease, err := acquire(ctx, c.Weight)
				return lease, c.wrongSlots(err)
			}
		}
		return handle{try: weighed(s.TryAcquire), lock: weighed(s.Acquire),
			place: func(ctx context.Context, keep time.Duration) (holdfast.Ticket, error) {
				ticket, err := s.Ticket(ctx, c.Weight, keep)
				return ticket, c.wrongSlots(err)
			}}
	case c.Shared:
		m := client.RWMutex(name, options...)
		return handle{try: m.TryRLock, lock: m.RLock, place: m.RTicket}
	case c.Exclusive:
		m := client.RWMutex(name, options...)
		return handle{try: m.TryLock, lock: m.Lock, place: m.Ticket}
	}
	m := client.Mutex(name, options...)
	return handle{try: m.TryLock, lock: m.Lock, place: m.Ticket}
}

// wrongSlots names the flag if the name is in use with another number of slots.
func (c *choice) wrongSlots(err error) error {
	var argument *holdfast.ArgumentError
	if !errors.As(err, &argument) {
		return err
	}
	at := slices.IndexFunc(argument.Problems, func(p holdfast.ArgumentProblem) bool { return p.Argument == "permits" })
	if at < 0 {
		return err
	}
	return cli.Usagef("--slots %d: allowed for %s: %s", c.Slots, c.title(), argument.Problems[at].Allowed)
}
