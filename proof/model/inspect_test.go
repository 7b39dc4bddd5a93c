package model

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/internal/protocol"
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

// tellsAll fails unless Inspect tells each place in order, page by page, and of each whether
// anybody waits there.
func (k *keeper) tellsAll(places int, waiting ...protocol.ID) {
	k.Helper()
	seen := map[protocol.ID]protocol.Place{}
	for page := (protocol.Page{Holds: 1, Queue: 100}); ; {
		in, err := k.p.Inspect(k.Context(), k.spec.Name, page)
		if err != nil || len(in.Holds) != 1 || in.QueueCount != len(waiting) {
			k.Fatalf("%+v, %v", in, err)
		}
		for _, place := range in.Queue {
			if place.Order <= page.After || place.Closed == slices.Contains(waiting, place.ID) {
				k.Fatalf("after %d: %+v", page.After, place)
			}
			seen[place.ID], page.After = place, place.Order
		}
		if len(in.Queue) < page.Queue {
			break
		}
	}
	if len(seen) != places {
		k.Errorf("%d places of %d are told", len(seen), places)
	}
}
