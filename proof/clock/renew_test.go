package clock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A lease is renewed at every third of its TTL, all leases of a client together, a hundred in a
// command.
func TestLeaseRenewalOfAllTogether(t *testing.T) {
	for name, test := range map[string]struct {
		ttl      time.Duration
		leases   int
		commands int // a round
	}{
		"one":               {15 * time.Second, 1, 1},
		"a hundred":         {15 * time.Second, 100, 1},
		"two hundred fifty": {15 * time.Second, 250, 3},
		"short":             {120 * time.Millisecond, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				a, granted := s.actor("a"), time.Now()
				leases := make([]*holdfast.Lease, test.leases)
				for i := range leases {
					leases[i] = s.lock(a, fmt.Sprint(i), holdfast.WithTTL(test.ttl))
				}
				for round := range 4 {
					at := granted.Add(time.Duration(round+1) * test.ttl / 3)
					until(at.Add(-1))
					from := time.Now()
					until(at)
					names := 0
					sent := s.seen(a, from, "renew")
					for _, c := range sent {
						names += len(c.keys)
						if !c.at.Equal(at) {
							t.Errorf("round %d came %v late", round, c.at.Sub(at))
						}
					}
					if len(sent) != test.commands || names != test.leases {
						t.Errorf("round %d: %d commands for %d names, want %d for %d", round, len(sent), names, test.commands, test.leases)
					}
					if got, want := leases[0].Until(), at.Add(test.ttl-margin(test.ttl)); !got.Equal(want) {
						t.Errorf("round %d: trusted for %v, want %v", round, got.Sub(at), want.Sub(at))
					}
				}
				if n, want := len(s.seen(a, granted, "renew")), 4*test.commands; n != want {
					t.Errorf("%d renewals, want %d", n, want)
				}
			})
		})
	}
}

// Trap 7: renewals that fail for a while do not end renewal, as long as trust lasts.
func TestLeaseRenewalRecovers(t *testing.T) {
	for name, fail := range map[string]func(*scene, *actor){
		"silence":          func(_ *scene, a *actor) { a.silence() },
		"answers lost":     func(_ *scene, a *actor) { a.silence(back) },
		"requests lost":    func(_ *scene, a *actor) { a.silence(there) },
		"connection lost":  func(_ *scene, a *actor) { a.kill() },
		"loading":          func(s *scene, a *actor) { s.refuse(a, "LOADING Redis is loading the dataset in memory") },
		"out of memory":    func(s *scene, a *actor) { s.refuse(a, "OOM command not allowed") },
		"unknown":          func(s *scene, a *actor) { s.refuse(a, "ERR something new") },
		"one request lost": func(s *scene, a *actor) { a.lose(there, s.script("renew"), 1) },
		"one answer lost":  func(s *scene, a *actor) { a.lose(back, "$1\r\n1\r\n", 1) },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				a, b, granted := s.actor("a"), s.actor("b"), time.Now()
				lease := s.lock(a, "n")
				waiter := s.wait(b, "n")
				pass(6 * time.Second)
				failing := time.Now()
				fail(s, a)
				until(granted.Add(18 * time.Second)) // trusted until 19.845 s
				if tries := len(s.seen(a, failing, "renew")); name == "loading" && (tries < 20 || tries > 50) {
					t.Errorf("%d tries in 8 s", tries)
				}
				s.refuse(a, "")
				a.resume()
				until(granted.Add(time.Minute))
				if err := lease.Err(); err != nil {
					t.Fatal(err)
				}
				if left := s.left("n"); left <= 9*time.Second {
					t.Errorf("the key has %v left", left)
				}
				s.release(lease)
				if next := s.take(waiter); next.err != nil || !next.at.Equal(granted.Add(time.Minute)) {
					t.Errorf("the next got in %v after the release, %v", next.at.Sub(granted.Add(time.Minute)), next.err)
				}
			})
		})
	}
}

// Trap 14: a server that forgot the scripts is sent them whole, by a renewal too.
func TestLeaseRenewalAfterScriptFlushSendsScript(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		lease := s.lock(s.actor("a"), "n")
		for range 5 {
			if err := s.rdb.ScriptFlush(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			pass(6 * time.Second)
		}
		if err := lease.Err(); err != nil {
			t.Error(err)
		}
		s.release(lease)
	})
}
