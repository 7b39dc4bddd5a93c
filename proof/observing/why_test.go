package observing_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// A scene is what is so: callers of which each holds names and waits for one that others hold.
type scene struct {
	waits map[string]map[string]bool // by a name that is held: what its holder waits for
	since map[string]time.Time       // when the first caller began to wait for a name
}

// Why, the longest wait and the possible deadlocks are what a model of the callers knows, while
// other names are locked, waited for and released.
func TestWhyAgreesWithTheScene(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, ctx := holdfasttest.Start(t), t.Context()
				s := setScene(ctx, t, server, rand.New(rand.NewPCG(seed, 29)))
				for range 3 {
					busy := server.Client(nil)
					for i := range 4 {
						go func() {
							for n := 0; ctx.Err() == nil; n++ {
								_ = busy.Mutex(fmt.Sprint("busy", (i+n)%5)).Do(ctx, func(context.Context) error {
									<-time.After(time.Duration(10+i) * time.Millisecond)
									return nil
								})
							}
						}()
					}
				}
				<-time.After(time.Second)
				s.check(ctx, t, server.Client(nil))
			})
		})
	}
}

// setScene lets up to eight callers hold one name or two, and then wait. All are one process, so
// each tells what it holds.
func setScene(ctx context.Context, t *testing.T, server *holdfasttest.Server, r *rand.Rand) *scene {
	s := &scene{map[string]map[string]bool{}, map[string]time.Time{}}
	free := r.Perm(16)
	held := make([][]string, 2+r.IntN(7))
	leases := make([]*holdfast.Lease, len(held))
	clients := make([]*holdfast.Client, len(held))
	for i := range held {
		clients[i] = server.Client(&holdfast.Config{TTL: time.Minute})
		for range 1 + r.IntN(2) {
			held[i], free = append(held[i], fmt.Sprint("n", free[0])), free[1:]
			s.waits[held[i][len(held[i])-1]] = map[string]bool{}
		}
		lease, err := clients[i].All(held[i]).Lock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		leases[i] = lease
	}
	for i, client := range clients {
		<-time.After(time.Duration(1+r.IntN(900)) * time.Millisecond)
		others := slices.Sorted(maps.Keys(s.waits))
		others = slices.DeleteFunc(others, func(name string) bool { return slices.Contains(held[i], name) })
		if r.IntN(4) == 0 {
			continue
		}
		name := others[r.IntN(len(others))]
		under, end := leases[i].Bind(ctx)
		t.Cleanup(end)
		for _, mine := range held[i] {
			s.waits[mine][name] = true
		}
		if s.since[name].IsZero() {
			s.since[name] = time.Now()
		}
		go func() { _, _ = client.Mutex(name, holdfast.WithDeadlockCheck()).Lock(under) }()
	}
	return s
}

// below returns the names that a name leads to, with itself.
func (s *scene) below(name string) map[string]bool {
	found := map[string]bool{name: true}
	for todo := []string{name}; len(todo) > 0; todo = todo[1:] {
		for next := range s.waits[todo[0]] {
			if !found[next] {
				found[next] = true
				todo = append(todo, next)
			}
		}
	}
	return found
}

func (s *scene) check(ctx context.Context, t *testing.T, client *holdfast.Client) {
	t.Helper()
	var all []lockinfo.Info
	for info, err := range client.List(ctx, holdfast.ListOptions{Pattern: "n*"}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, info)
		if since := s.since[info.Name]; !since.Equal(info.WaitingSince) {
			t.Errorf("%s is waited for since %v, want %v", info.Name, info.WaitingSince, since)
		}
	}
	cyclic := false
	for name, waits := range s.waits {
		chain, err := client.Why(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		told := map[string]bool{name: true}
		for _, link := range chain.Links {
			if !told[link.Name] {
				continue // perhaps: a caller that is busy with other names
			}
			for _, w := range link.Waits {
				if !w.Perhaps {
					told[w.Name] = true
				}
				if s.waits[link.Name][w.Name] == w.Perhaps {
					t.Errorf("the holder of %s waits for %+v, want one of %v", link.Name, w, s.waits[link.Name])
				}
			}
		}
		if want := s.below(name); !maps.Equal(told, want) {
			t.Errorf("why %s tells of %v, want %v", name, told, want)
		}
		for next := range waits {
			cyclic = cyclic || s.below(next)[name]
		}
	}
	found := lockinfo.PossibleDeadlocks(all)
	if len(found) > 0 != cyclic {
		t.Errorf("%d possible deadlocks, and there is a cycle: %t", len(found), cyclic)
	}
	for _, cycle := range found {
		for _, m := range cycle.Members {
			if !s.waits[m.Holds][m.Waits] {
				t.Errorf("told that the holder of %s waits for %s, want one of %v", m.Holds, m.Waits, s.waits[m.Holds])
			}
		}
	}
}
