package hold

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
)

const (
	// replaceAfter is how long the run before has to let go, if --replace has no time.
	replaceAfter = 30 * time.Second

	// askPause is how often a run that replaces another asks again: a message may be lost, and the
	// holder may be another by then.
	askPause = time.Second
)

// A replaceRequest is what a waiting run does to have the place of the run that holds.
type replaceRequest struct {
	run     *Run
	client  *holdfast.Client
	notices *notices
	asked   map[int64]time.Time // when each hold was first asked, by token
}

// replaceHolders asks the holders to let go until ctx ends, and breaks each hold that goes on for
// longer than --replace says. A broken hold keeps others out until its command has ended. If the
// server refuses that to this user, the run waits on.
func (r *Run) replaceHolders(ctx context.Context, client *holdfast.Client, notices *notices) {
	p := &replaceRequest{r, client, notices, map[int64]time.Time{}}
	for ctx.Err() == nil {
		for _, name := range r.Names {
			var refused *holdfast.StoreError
			if err := p.replace(ctx, name); errors.As(err, &refused) && refused.Kind == holdfast.StoreDenied {
				notices.printf("the holder of %q is not replaced: %s", name, cli.Trim(err.Error()))
				return
			}
		}
		select {
		case <-time.After(min(askPause, r.Replace/4)):
		case <-ctx.Done():
		}
	}
}

// replace asks the holders of one name, and breaks those whose time is over. A server that does not
// answer is asked again.
func (p *replaceRequest) replace(ctx context.Context, name string) error {
	info, err := p.client.Inspect(ctx, name)
	if err != nil {
		return err
	}
	own, ask := p.run.Owner, false
	for _, hold := range slices.Backward(info.Holds) {
		if hold.Remainder() || own != "" && hold.Owner == own {
			continue
		}
		asked, known := p.asked[hold.Token]
		if !known {
			asked = time.Now()
			p.asked[hold.Token] = asked
			p.notices.printf("asking %q, which holds %q, to let go within %v", hold.Label, name, p.run.Replace)
		}
		if time.Since(asked) < p.run.Replace {
			ask = true
			continue
		}
		if err := p.client.Break(ctx, name, hold.Token); err != nil {
			return err
		}
		p.notices.printf("%q did not let go of %q for %v: its hold is broken", hold.Label, name, p.run.Replace)
	}
	if ask { // all of them, in one request
		_, err = p.client.Ask(ctx, name)
	}
	return err
}

// thatReplaces returns a handle whose wait replaces the holders.
func (r *Run) thatReplaces(h handle, client *holdfast.Client, notices *notices) handle {
	if r.Replace == 0 {
		return h
	}
	lock := h.lock
	h.lock = func(ctx context.Context) (*holdfast.Lease, error) {
		replacing, cancel := context.WithCancel(ctx)
		over := make(chan struct{})
		go func() {
			defer close(over)
			r.replaceHolders(replacing, client, notices)
		}()
		defer func() {
			cancel()
			<-over
		}()
		return lock(ctx)
	}
	return h
}
