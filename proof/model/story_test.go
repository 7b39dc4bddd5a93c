package model

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/native"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/proof/embedded"
	"github.com/holdfast-go/holdfast/proof/explore"
	"github.com/holdfast-go/holdfast/redisstore"
)

// The scripts answer each request of a small world as the memory does, as time passes: of random
// stories, or of the one in HOLDFAST_STORY, as proof/explore prints it.
func TestScriptsInSmallWorlds(t *testing.T) {
	name, code, one := strings.Cut(os.Getenv("HOLDFAST_STORY"), "|")
	worlds, walks := explore.Worlds(false), uint64(4)
	if one || os.Getenv("HOLDFAST_PROOF") == "1" {
		worlds, walks = append(worlds, explore.Worlds(true)...), 40
	}
	for _, w := range worlds {
		kept := slices.ContainsFunc(w.Callers, func(c explore.Caller) bool { return c.Keep > 0 })
		if w.NoQueue || kept || one && w.Name != name {
			continue // the scripts have a queue, and kept places are the matter of the other tests
		}
		t.Run(w.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := embedded.Start(t)
				embedded.NewClock(srv)
				if one {
					story := w.Tell(code)
					replay(t, srv, &w, "one", &story)
					return
				}
				w.Life = 100 // the scripts may keep a place for longer than its life, and the memory does not
				for seed := range walks {
					story := w.Walk(rand.New(rand.NewPCG(seed, 1)), 150)
					replay(t, srv, &w, fmt.Sprint(seed), &story)
				}
			})
		})
	}
}

// replay sends the requests of a story to the memory and to the scripts. Each comes a millisecond
// later in its tick than the one before in its own, so nothing ends at the moment of a request.
func replay(t *testing.T, srv *embedded.Server, w *explore.World, prefix string, story *explore.Story) {
	t.Helper()
	server := memory.New(protocol.Features{Queue: true})
	var sides [2][]protocol.Protocol
	for i := range w.Callers {
		rdb := srv.Client(func(o *redis.Options) { o.ClientName = "story" })
		p := native.New(wire.Route(redisstore.New(rdb)), native.Config{Prefix: prefix,
			Process: fmt.Sprintf("%022d", i), Timeout: time.Minute})
		fatal.If(t, p.Ready(t.Context(), "a"))
		sides[0], sides[1] = append(sides[0], server.Connect(prefix)), append(sides[1], p)
	}
	for _, side := range sides {
		for _, p := range side {
			listening, err := p.Listen(t.Context(), newSubscribers())
			fatal.If(t, err)
			defer listening.Close()
		}
	}
	begin := time.Now().Truncate(explore.Tick)
	for i := range story.Requests {
		r := &story.Requests[i]
		at := begin.Add(time.Duration(r.At)*explore.Tick + time.Duration(i)*time.Millisecond)
		<-time.After(time.Until(at))
		want := w.Replay(sides[0][r.Who], r, begin)
		got := w.Replay(sides[1][r.Who], r, begin)
		if want == "evicted" && got == "queued" {
			return // ask.lua lets an evicted ticket join again by its short way, and tells its next ask
		}
		if want != r.Answer() || got != want {
			for _, r := range story.Requests[:i] {
				t.Logf("tick %d: %s: %s", r.At, &r, r.Answer())
			}
			t.Fatalf("tick %d: %s: told %s, in memory %s, scripts %s\n%s", r.At, r, r.Answer(), want, got, story.Code)
		}
	}
}
