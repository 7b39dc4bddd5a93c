package model

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/native"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/redisstore"
)

// A keeper sends requests about one name to a real server, and knows what was told.
type keeper struct {
	*testing.T
	srv  *redisserver.Server
	p    protocol.Protocol
	told *subscribers
	spec protocol.Spec
	ids  int64
}

// A clustered store takes a single server for a cluster without sharded channels.
type clustered struct{ wire.Store }

func (clustered) Describe(context.Context) (wire.Topology, error) {
	return wire.Topology{Cluster: true}, nil
}

func newKeeper(t *testing.T, srv *redisserver.Server, user string, change func(wire.Store) wire.Store) *keeper {
	t.Helper()
	options := &redis.Options{Addr: srv.Addr()}
	if user != "" {
		options.Username, options.Password = user, "pw"
	}
	rdb := redis.NewClient(options)
	t.Cleanup(func() { rdb.Close() })
	k := &keeper{T: t, srv: srv, told: newSubscribers(),
		spec: protocol.Spec{Name: t.Name(), Kind: protocol.Mutex, Claim: time.Minute, Life: 18 * time.Second}}
	k.p = native.New(change(wire.Route(redisstore.New(rdb))),
		native.Config{Prefix: "kept", Process: fmt.Sprintf("%022d", 1), Timeout: 10 * time.Second})
	fatal.If(t, k.p.Ready(t.Context(), k.spec.Name))
	listening, err := k.p.Listen(t.Context(), k.told)
	fatal.If(t, err)
	t.Cleanup(listening.Close)
	return k
}

func same(s wire.Store) wire.Store { return s }

func (k *keeper) ticket(keep time.Duration) protocol.Ticket {
	k.ids++
	return protocol.Ticket{ID: id(k.ids), Block: 1, Keep: keep}
}

// ask fails unless an ask is answered as it should be.
func (k *keeper) ask(ask protocol.Ask, want protocol.Status) {
	k.Helper()
	ask.TTL, ask.Deadline = forever, time.Now().Add(time.Minute)
	got, err := k.p.Bind(k.spec).Ask(k.Context(), ask)
	if err != nil || got.Status != want {
		k.Fatalf("%+v: %+v, %v; want %v", ask.Ticket, got, err, want)
	}
}

func (k *keeper) join(t protocol.Ticket, want protocol.Status) {
	k.Helper()
	k.ask(protocol.Ask{Ticket: t, Join: true}, want)
}

// wait sends the first ask of a wait, of a process that listens.
func (k *keeper) wait(t protocol.Ticket) {
	k.Helper()
	listening, err := k.p.ListenTicket(k.Context(), t.ID, k.told)
	fatal.If(k, err)
	k.Cleanup(listening.Close)
	k.ask(protocol.Ask{Ticket: t, InLine: true}, protocol.Queued)
}

func (k *keeper) free(t protocol.Ticket) {
	k.Helper()
	if was, err := k.p.Bind(k.spec).Free(k.Context(), protocol.FreeRequest{Ticket: t}); err != nil || !was {
		k.Fatalf("Free: %v, %v", was, err)
	}
}

// awaitMessage waits until a ticket was told something.
func (k *keeper) awaitMessage(t protocol.Ticket, grant bool) {
	k.Helper()
	for late := time.After(30 * time.Second); ; {
		k.told.mu.Lock()
		heard := k.told.nudged[t.ID]
		if grant {
			heard = k.told.granted[t.ID] > 0
		}
		k.told.mu.Unlock()
		if heard {
			return
		}
		select {
		case <-late:
			k.Fatalf("%s was told %s", t.ID, k.told.told())
		case <-time.After(time.Millisecond):
		}
	}
}

// blindServers open keepers of servers that cannot tell who listens.
func blindServers(t *testing.T) map[string]func(*testing.T) *keeper {
	t.Helper()
	srv := redisserver.Start(t)
	if _, err := srv.Do("ACL", "SETUSER", "few", "on", ">pw", "~*", "&*", "+@all", "-pubsub"); err != nil {
		t.Fatal(err)
	}
	return map[string]func(*testing.T) *keeper{
		"a cluster without sharded channels": func(t *testing.T) *keeper {
			return newKeeper(t, srv, "", func(s wire.Store) wire.Store { return clustered{s} })
		},
		"PUBSUB is refused": func(t *testing.T) *keeper { return newKeeper(t, srv, "few", same) },
	}
}

// Where the server cannot tell who listens, the name is never handed to a kept place. A waiter
// behind it gets the name. If there is none, the ticket is nudged, and gets in by asking. Inspect
// tells that it is not known, and all else.
func TestKeptPlaceWhereTheServerCannotTell(t *testing.T) {
	for name, open := range blindServers(t) {
		t.Run(name, func(t *testing.T) {
			k := open(t)
			holder, kept, other, behind := k.ticket(0), k.ticket(forever), k.ticket(forever), k.ticket(0)
			k.join(holder, protocol.Held)
			k.join(kept, protocol.Queued)
			k.join(other, protocol.Queued)
			behind.Under = []protocol.Evidence{{Name: "a:b}", ID: id(70)}, {Name: "c", ID: id(80)}}
			behind.More = true
			k.join(behind, protocol.Queued)
			in, err := k.p.Inspect(t.Context(), k.spec.Name, protocol.Page{Queue: 100})
			if err != nil || len(in.Queue) != 3 || in.Queue[2].Heard != protocol.HeardUnknown ||
				fmt.Sprint(in.Queue[2].Under, in.Queue[2].More) != fmt.Sprint(behind.Under, true) {
				t.Errorf("%+v, %v", in, err)
			}
			k.wait(kept)
			k.free(holder)
			k.awaitMessage(behind, true)
			k.ask(protocol.Ask{Ticket: behind, InLine: true}, protocol.Held)
			k.ask(protocol.Ask{Ticket: kept, InLine: true}, protocol.Queued)
			k.free(behind)
			k.awaitMessage(kept, false)
			k.ask(protocol.Ask{Ticket: kept, InLine: true}, protocol.Held)
			if k.told.granted[kept.ID] > 0 {
				t.Error("it was handed over")
			}
			k.free(kept)
			k.join(k.ticket(0), protocol.Held) // beside the place where nobody waits
		})
	}
}

// Many places where nobody waits do not hide a waiter behind them: from a release, from its own
// ask, or from Inspect.
func TestKeptPlacesDoNotHideAWaiter(t *testing.T) {
	srv := redisserver.Start(t)
	for _, many := range []int{65, 1100} {
		t.Run(fmt.Sprint(many), func(t *testing.T) {
			k := newKeeper(t, srv, "", same)
			holder, behind := k.ticket(0), k.ticket(0)
			k.join(holder, protocol.Held)
			for range many {
				k.join(k.ticket(forever), protocol.Queued)
			}
			k.join(behind, protocol.Queued)
			k.tellsAll(many+1, behind.ID)
			k.free(holder)
			if many < 1024 {
				k.awaitMessage(behind, true)
			}
			k.ask(protocol.Ask{Ticket: behind, InLine: true}, protocol.Held)
			k.free(behind)
			k.join(k.ticket(0), protocol.Held)
		})
	}
}

// An ordinary ask does not shorten the life of the queue below what a kept place needs. A queue
// without such a place lasts a few seconds longer than the last waiter's life.
func TestKeptPlaceOutlivesOrdinaryAsks(t *testing.T) {
	srv := redisserver.Start(t)
	k := newKeeper(t, srv, "", same)
	left := func() time.Duration {
		ms, err := srv.Do("PTTL", "kept:{"+k.spec.Name+"}:queue")
		fatal.If(t, err)
		return time.Duration(ms.(int64)) * time.Millisecond
	}
	holder, ordinary := k.ticket(0), k.ticket(0)
	ordinary.NoMessages = true
	k.join(holder, protocol.Held)
	k.join(ordinary, protocol.Queued)
	in, err := k.p.Inspect(t.Context(), k.spec.Name, protocol.Page{Queue: 1})
	if err != nil || len(in.Queue) != 1 || in.Queue[0].Heard != protocol.HeardUnknown {
		t.Errorf("without messages: %+v, %v", in, err)
	}
	if got := left(); got <= 0 || got > 23*time.Second {
		t.Errorf("the queue lasts %v", got)
	}
	kept := k.ticket(forever)
	k.join(kept, protocol.Queued)
	k.ask(protocol.Ask{Ticket: ordinary, InLine: true}, protocol.Queued)
	k.join(k.ticket(0), protocol.Queued) // the short way
	k.spec.Owner = "o"
	k.join(k.ticket(0), protocol.Queued)
	if got := left(); got < forever/2 {
		t.Errorf("the queue lasts %v", got)
	}
}

// A place whose life is over is none, although the server still has it: the ticket takes nothing.
func TestKeptPlaceLifeIsOver(t *testing.T) {
	srv := redisserver.Start(t)
	k := newKeeper(t, srv, "", same)
	holder, other, kept := k.ticket(0), k.ticket(forever), k.ticket(50*time.Millisecond)
	k.join(holder, protocol.Held)
	k.join(other, protocol.Queued) // it keeps the queue at the server
	k.join(kept, protocol.Queued)
	<-time.After(60 * time.Millisecond)
	k.ask(protocol.Ask{Ticket: kept, InLine: true}, protocol.Busy)
	k.free(holder)
	k.ask(protocol.Ask{Ticket: kept, InLine: true}, protocol.Busy)
	k.ask(protocol.Ask{Ticket: kept, InLine: true, Leaving: true}, protocol.Busy)
	k.ask(protocol.Ask{Ticket: other, InLine: true}, protocol.Held)
}

// An offer that nobody takes up costs one claim and not the place. There is one for each ask.
func TestKeptPlaceOfferNotTakenUp(t *testing.T) {
	srv := redisserver.Start(t)
	k := newKeeper(t, srv, "", same)
	k.spec.Claim = 100 * time.Millisecond
	holder, kept, behind, later := k.ticket(0), k.ticket(forever), k.ticket(0), k.ticket(0)
	k.join(holder, protocol.Held)
	k.join(kept, protocol.Queued)
	k.wait(kept)
	k.join(behind, protocol.Queued)
	k.free(holder)
	k.awaitMessage(kept, true)
	for late := time.After(30 * time.Second); ; {
		got, err := k.p.Bind(k.spec).Ask(t.Context(),
			protocol.Ask{Ticket: behind, InLine: true, TTL: forever, Deadline: time.Now().Add(time.Minute)})
		if err == nil && got.Status == protocol.Held {
			break
		}
		select {
		case <-late:
			t.Fatalf("the waiter behind the place does not get in: %+v, %v", got, err)
		case <-time.After(time.Millisecond):
		}
	}
	if n := k.told.granted[kept.ID]; n != 1 {
		t.Errorf("%d offers", n)
	}
	k.join(later, protocol.Queued)
	k.ask(protocol.Ask{Ticket: kept, InLine: true}, protocol.Queued) // no answer of "gone"
	k.free(behind)
	k.ask(protocol.Ask{Ticket: kept, InLine: true}, protocol.Held) // the offer, or its turn again
	k.ask(protocol.Ask{Ticket: later, InLine: true}, protocol.Queued)
}

// A process that missed three asks does not wait at its place any more, although the server takes
// its connection for open: readers pass the place of a writer. Its next ask opens the place again.
func TestKeptPlaceOfASilentHost(t *testing.T) {
	srv := redisserver.Start(t)
	k := newKeeper(t, srv, "", same)
	kept := k.ticket(forever)
	missed := func(after time.Duration) {
		t.Helper()
		life := "-" + fmt.Sprint(time.Now().Add(forever-after).UnixMilli())
		if _, err := srv.Do("ZADD", "kept:{"+k.spec.Name+"}:queue", "XX", life, k.lifeOf(kept)); err != nil {
			t.Fatal(err)
		}
	}
	k.spec.Kind = protocol.ReadWrite
	write, read := k.spec, k.spec
	read.Shared = true
	holder, behind := k.ticket(0), k.ticket(0)
	k.spec = read
	k.join(holder, protocol.Held)
	k.spec = write
	k.join(kept, protocol.Queued)
	k.wait(kept)
	k.spec = read
	k.join(behind, protocol.Queued)
	missed(8 * time.Second)
	k.ask(protocol.Ask{Ticket: behind, InLine: true}, protocol.Queued)
	missed(18 * time.Second)
	k.ask(protocol.Ask{Ticket: behind, InLine: true}, protocol.Held)
	late := k.ticket(0)
	k.spec = write
	k.ask(protocol.Ask{Ticket: kept, InLine: true}, protocol.Queued)
	k.spec = read
	k.join(late, protocol.Queued)
	k.free(holder)
	k.free(behind)
	k.awaitMessage(kept, true)
}

// lifeOf is the member of the queue whose score says when the life of a place that is open ends.
func (k *keeper) lifeOf(t protocol.Ticket) string {
	k.Helper()
	members, err := k.srv.Do("ZRANGE", "kept:{"+k.spec.Name+"}:queue", "0", "-1")
	fatal.If(k, err)
	for _, member := range members.([]any) {
		if text := member.(string); text[0] == 'l' && strings.HasSuffix(text, string(t.ID)) {
			return text
		}
	}
	k.Fatalf("the place is closed: %v", members)
	return ""
}
