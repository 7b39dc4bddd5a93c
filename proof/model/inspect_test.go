package model

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// inspect compares what both sides tell of the name, all of it and page by page.
func (p *pair) inspect(t *rapid.T) {
	p.sendToBoth(t, "inspect", 0, func(s *side, c protocol.Protocol) (string, error) {
		in, err := c.Inspect(context.Background(), p.name, protocol.Page{Holds: 100, Queue: 100})
		if err != nil {
			return "", err
		}
		for _, h := range in.Holds {
			if token := s.subscribers.token(h.ID); token != 0 && token != h.Token {
				return "", fmt.Errorf("%s has token %d, and is told with %d", h.ID, token, h.Token)
			}
			if h.Until <= in.Server || h.Since > in.Server || h.State == protocol.HoldTaken &&
				(h.Renewed < h.Since || h.Renewed > in.Server) {
				return "", fmt.Errorf("at %d: %+v", in.Server, h)
			}
		}
		if paged, err := p.pages(c); err != nil || paged != queueOf(in.Queue, true) {
			return "", fmt.Errorf("in pages %s, %w", paged, err)
		}
		return p.inspectionText(in), nil
	})
}

// pages is the queue, read two places at a time.
func (p *pair) pages(c protocol.Protocol) (string, error) {
	var all []protocol.Place
	for page := (protocol.Page{Queue: 2}); ; {
		in, err := c.Inspect(context.Background(), p.name, page)
		if err != nil {
			return "", err
		}
		for _, place := range in.Queue {
			all, page.After = append(all, place), place.Order
		}
		if len(in.Queue) < page.Queue {
			return queueOf(all, true), nil
		}
	}
}

// inspectionText returns what both sides must tell alike.
func (p *pair) inspectionText(in protocol.Inspection) string {
	var holds []string
	for _, h := range in.Holds {
		holds = append(holds, fmt.Sprintf("%s %d by %q: %+v, shared %v, weight %d, block %d, fixed %v, TTL %v", h.ID,
			h.State, h.By, h.Party, h.Shared,
			h.Weight, h.Block, h.Fixed, h.TTL))
	}
	slices.Sort(holds)
	waiting := p.countWaiting(in.QueueCount)
	permits := in.Permits
	if in.Kind == 0 {
		permits = 0
	}
	return fmt.Sprintf("kind %d, %d of %d permits, %d hold: %s; %s wait: %s", in.Kind, in.Taken, permits, in.HoldCount,
		strings.Join(holds, ", "),
		waiting, queueOf(in.Queue, waiting != "some"))
}

// queueOf is a queue in order. It leaves out which places are closed where that need not be
// certain.
func queueOf(places []protocol.Place, certain bool) string {
	var queue []string
	for _, w := range places {
		text := fmt.Sprintf("%s: %+v, shared %v, weight %d, kept %v, under %v, more %v", w.ID, w.Party, w.Shared,
			w.Weight, w.Kept, w.Under, w.More)
		if certain {
			text += fmt.Sprintf(", closed %v, heard %d", w.Closed, w.Heard)
		}
		queue = append(queue, text)
	}
	return strings.Join(queue, ", ")
}

// Thousands of waiters on one name: all are told, page by page, and a page behind many costs as
// much as the first one. So does a page among as many closed places, and none of them is skipped.
func TestInspectManyWaiters(t *testing.T) {
	srv := redisserver.Start(t)
	for name, keep := range map[string]time.Duration{"waiting": 0, "closed": forever} {
		t.Run(name, func(t *testing.T) {
			many := 2000
			if harness.Thorough {
				many = 10_000
			}
			k := newKeeper(t, srv, "", same)
			k.join(k.ticket(0), protocol.Held)
			want := map[protocol.ID]bool{}
			for range many {
				ticket := k.ticket(keep)
				k.join(ticket, protocol.Queued)
				want[ticket.ID] = true
			}
			last, pages, began := k.ticket(0), 0, time.Now()
			k.join(last, protocol.Queued)
			want[last.ID] = true
			for page := (protocol.Page{Holds: 1, Queue: 100}); ; pages++ {
				in, err := k.p.Inspect(t.Context(), k.spec.Name, page)
				if err != nil || len(in.Holds) != 1 || in.Kind != protocol.Mutex {
					t.Fatalf("%+v, %v", in, err)
				}
				if waiting := map[bool]int{true: 1, false: many + 1}[keep > 0]; in.QueueCount != waiting {
					t.Fatalf("%d wait, want %d", in.QueueCount, waiting)
				}
				for _, place := range in.Queue {
					if !want[place.ID] || place.Order <= page.After ||
						place.Closed != (keep > 0 && place.ID != last.ID) {
						t.Fatalf("after %d: %+v", page.After, place)
					}
					delete(want, place.ID)
					page.After = place.Order
				}
				if len(in.Queue) < page.Queue {
					break
				}
			}
			if len(want) > 0 {
				t.Errorf("%d waiters are not told", len(want))
			}
			t.Logf("%d pages in %v", pages+1, time.Since(began))
		})
	}
}

// Where PUBSUB is not permitted, it is not known who listens, and all else is told.
func TestInspectWhereTheServerCannotTell(t *testing.T) {
	open := blindServers(t)
	open["no messages"] = func(t *testing.T) *keeper { return newKeeper(t, redisserver.Start(t), "", same) }
	for name, open := range open {
		t.Run(name, func(t *testing.T) {
			k := open(t)
			waits := k.ticket(0)
			waits.NoMessages = name == "no messages"
			waits.Under, waits.More = []protocol.Evidence{{Name: "a:b}", ID: id(7)}, {Name: "c", ID: id(8)}}, true
			k.join(k.ticket(0), protocol.Held)
			k.join(waits, protocol.Queued)
			in, err := k.p.Inspect(t.Context(), k.spec.Name, protocol.Page{Holds: 1, Queue: 1})
			if err != nil || len(in.Queue) != 1 || in.Queue[0].Heard != protocol.HeardUnknown ||
				in.Queue[0].ID != waits.ID ||
				fmt.Sprint(in.Queue[0].Under, in.Queue[0].More) != fmt.Sprint(waits.Under, true) {
				t.Errorf("%+v, %v", in, err)
			}
		})
	}
}
