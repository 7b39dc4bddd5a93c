package holdfast_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

// tries has a try of each type that gives leases, for one name or more.
var tries = map[string]func(c *holdfast.Client, name string, permits int64, o ...holdfast.Option) (
	*holdfast.Lease, error){
	"Mutex": func(c *holdfast.Client, name string, _ int64, o ...holdfast.Option) (*holdfast.Lease, error) {
		return c.Mutex(name, o...).TryLock(context.Background())
	},
	"RWMutex": func(c *holdfast.Client, name string, _ int64, o ...holdfast.Option) (*holdfast.Lease, error) {
		return c.RWMutex(name, o...).TryLock(context.Background())
	},
	"RWMutex, to read": func(c *holdfast.Client, name string, _ int64, o ...holdfast.Option) (*holdfast.Lease, error) {
		return c.RWMutex(name, o...).TryRLock(context.Background())
	},
	"Semaphore": func(c *holdfast.Client, name string, permits int64, o ...holdfast.Option) (*holdfast.Lease, error) {
		return c.Semaphore(name, permits, o...).TryAcquire(context.Background(), permits)
	},
	"Election": func(c *holdfast.Client, name string, _ int64, o ...holdfast.Option) (*holdfast.Lease, error) {
		return c.Election(name, o...).TryCampaign(context.Background())
	},
	"Group": func(c *holdfast.Client, name string, _ int64, o ...holdfast.Option) (*holdfast.Lease, error) {
		return c.All([]string{name, name + "x"}, o...).TryLock(context.Background())
	},
}

// firstErrorOf returns the error of the first method of a handle of a type, made with an option.
func firstErrorOf(head string, c *holdfast.Client, option holdfast.Option) error {
	switch head {
	case "Latch":
		return c.Latch("n", option).Set(context.Background(), 0)
	case "RWMutex":
		return errors.Join(releaseAtOnce(tries[head](c, "n", 1, option)),
			releaseAtOnce(tries[head+", to read"](c, "n", 1, option)))
	}
	return releaseAtOnce(tries[head](c, "n", 1, option))
}

// releaseAtOnce gives the lease back.
func releaseAtOnce(lease *holdfast.Lease, err error) error {
	if err != nil {
		return err
	}
	return lease.Release()
}

// TestOptions compares the table at Option with what the types refuse.
func TestOptions(t *testing.T) {
	options := map[string]holdfast.Option{
		"WithTTL": holdfast.WithTTL(time.Minute), "WithoutRenewal": holdfast.WithoutRenewal(),
		"WithMaxHold": holdfast.WithMaxHold(time.Minute),
		"WithMinHold": holdfast.WithMinHold(1), "WithPolling": holdfast.WithPolling(time.Millisecond, 1),
		"WithOwner":       holdfast.WithOwner("o"),
		"WithStrictOrder": holdfast.WithStrictOrder(), "WithLabel": holdfast.WithLabel("l"),
		"WithWait":          holdfast.WithWait(time.Minute),
		"WithDeadlockCheck": holdfast.WithDeadlockCheck(),
		"WithUnder":         holdfast.WithUnder(map[string]int64{"n": 1}),
		"WithRetain":        holdfast.WithRetain(time.Second),
		"WithoutRecall":     holdfast.WithoutRecall(), "WithWanted": holdfast.WithWanted(),
	}
	text, err := os.ReadFile("options.go")
	must(t, err)
	declared := regexp.MustCompile(`(?m)^func (With\w+)\(.*\) Option`)
	for _, option := range declared.FindAllStringSubmatch(string(text), -1) {
		if options[option[1]] == nil {
			t.Errorf("%s is not tested here", option[1])
		}
	}
	var heads, rows []string
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(strings.TrimPrefix(line, "//"))
		switch {
		case heads == nil && len(fields) > 1 && fields[0] == "Mutex" && fields[1] == "RWMutex":
			heads = fields
		case len(fields) == len(heads)+1 && options[fields[0]] != nil:
			rows = append(rows, fields[0])
			for i, head := range heads {
				client, err := holdfast.NewOn(
					memory.New(protocol.Features{Queue: true}).Connect("p"), nil)
				must(t, err)
				err = firstErrorOf(head, client, options[fields[0]])
				if cell := fields[i+1]; cell == "yes" && err != nil || cell == "-" && !refuses(err, fields[0]) ||
					cell != "yes" && cell != "-" {
					t.Errorf("%s on %s is %q in the table, and: %v", fields[0], head, cell, err)
				}
				must(t, client.Close())
			}
		}
	}
	want := []string{"Election", "Group", "Latch", "Mutex", "RWMutex", "Semaphore"}
	if !slices.Equal(slices.Sorted(slices.Values(heads)), want) {
		t.Errorf("the table has the columns %q, want %q", heads, want)
	}
	if want := slices.Sorted(maps.Keys(options)); !slices.Equal(slices.Sorted(slices.Values(rows)), want) {
		t.Errorf("the table has the rows %q, want %q", rows, want)
	}
}

// refuses reports whether an error is an *ArgumentError about this option alone.
func refuses(err error, option string) bool {
	var bad *holdfast.ArgumentError
	return errors.As(err, &bad) && len(bad.Problems) == 1 && bad.Problems[0].Argument == option
}
