package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/demo"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/try"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// The leases outlast a machine that stands still, and take-overs may be late: only make proof
// judges how long they take. Demos that end early are in testdata/script/demo.txtar.
func TestDemo(t *testing.T) {
	long(t)
	for name, d := range map[string]*try.Demo{
		"server of its own":  {Config: demo.Config{Rounds: 3, Workers: 4}}, // embedded without a redis-server
		"server of the user": {Redis: "redis://", Config: demo.Config{Rounds: 3, Workers: 4}},
		"one round":          {Embedded: true, Config: demo.Config{Rounds: 1, Workers: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			d.TTL, d.Out, d.Stderr = 4*time.Second, &out, os.Stderr
			if !measured() {
				d.Slack = 8 * time.Second
			}
			if d.Redis != "" {
				s := redisserver.Start(t)
				d.Redis += s.Addr()
				if _, err := s.Do("SET", "holdfast-demo", "of the user"); err != nil {
					t.Fatal(err)
				}
				defer func() {
					if keys, err := s.Do("KEYS", "*"); err != nil || len(keys.([]any)) != 1 {
						t.Errorf("keys %q, %v; want only that of the user", keys, err)
					}
				}()
			}
			if err := d.Run(t.Context()); err != nil {
				t.Fatalf("%v\n%s", err, &out)
			}
			want := []string{"is killed with -9", "takes over", "after the kill", "double draws  0\n", "\nkill -9 ",
				"Every round had exactly one draw."}
			if d.Rounds > 1 {
				want = append(want, "is stopped before it draws", "draws late: REFUSED by the ledger, token #",
					"; late draw refused; loss seen", "see the draw: 2; hand-over ", "takes its time, and renews",
					"lease is lost: no renewal was confirmed", "lease is lost: the max hold is over")
			}
			for _, want := range want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("no %q in\n%s", want, &out)
				}
			}
			for line := range strings.Lines(out.String()) {
				if n := utf8.RuneCountInString(line) - 1; n > 82 ||
					n > 80 && !strings.Contains(line, "inside this program") {
					t.Errorf("%d columns: %s", n, line)
				}
			}
		})
	}
}
