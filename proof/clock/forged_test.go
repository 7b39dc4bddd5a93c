package clock_test

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// Messages are hints. A client that may publish on a waiter's channel, and read its id from the
// queue, can make it believe for one claim that it holds; not for longer, and not without the id.
// SECURITY.md says so.
func TestHandOverForgedIsTrustedForOneClaim(t *testing.T) {
	for name, test := range map[string]struct {
		message  func(id string, server int64) string
		believed bool
	}{
		"as a server would": {func(id string, server int64) string { return fmt.Sprintf("3G%s%016d1|500|%d", id, server, server) }, true},
		"for an hour":       {func(id string, server int64) string { return fmt.Sprintf("3G%s%016d1|3600000|%d", id, server, server) }, false},
		"for ever": {func(id string, server int64) string {
			return fmt.Sprintf("3G%s%016d1|9223372036854775807|%d", id, server, server)
		}, false},
		"from the future": {func(id string, server int64) string {
			return fmt.Sprintf("3G%s%016d1|500|%d", id, server, server+3_600_000_000)
		}, false},
		"for another":       {func(_ string, server int64) string { return fmt.Sprintf("3G%022d%016d1|500|%d", 7, server, server) }, false},
		"of another format": {func(id string, server int64) string { return fmt.Sprintf("1G%s%016d1|500|%d", id, server, server) }, false},
		"nonsense":          {func(id string, _ int64) string { return "3G" + id + "|||" }, false},
		"a nudge":           {func(id string, _ int64) string { return "3N" + id + "0" }, false},
		"a nudge for later": {func(id string, _ int64) string { return "3N" + id + "9223372036854775807" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				a, b := s.actor("a"), s.actor("b")
				lease := s.lock(a, "n")
				waiter := s.wait(b, "n")
				pass(time.Second)
				member := s.rdb.ZRange(t.Context(), key("n")+":queue", -1, -1).Val()[0]
				channel := regexp.MustCompile(`:p(holdfast:@[^/]+/\d+/.{22})`).FindStringSubmatch(member)[1] // host, process, random
				forged := time.Now()
				if heard := s.rdb.Publish(t.Context(), channel, test.message(member[4:26], forged.UnixMicro())).Val(); heard != 1 {
					t.Fatalf("%d heard it on %q", heard, channel)
				}
				pass(time.Millisecond)
				if !test.believed {
					select {
					case g := <-waiter:
						t.Fatalf("it was believed: %v", g.err)
					default:
					}
					s.release(lease)
					if g := s.take(waiter); g.err != nil {
						t.Error(g.err)
					}
					return
				}
				g := <-waiter
				if g.err != nil {
					t.Fatal(g.err)
				}
				if end := lost(t, g.lease, holdfast.LossGone); end.Sub(forged) > claimTime {
					t.Errorf("believed for %v", end.Sub(forged))
				}
				if err := lease.Err(); err != nil {
					t.Errorf("the holder: %v", err)
				}
			})
		})
	}
}
