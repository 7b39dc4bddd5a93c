package clock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// Trap 5 and 7: a holder is told at its next renewal that its key is gone or another's. The key is
// left as it is, and nothing more is sent about it.
func TestLeaseKeyTakenIsLost(t *testing.T) {
	const stranger = "3mx:abcdefghijklmnopqrstuv10097568000000000500:1:15000:0:0:0:"
	for name, test := range map[string]struct {
		command []any // empty: DEL
		reason  holdfast.Reason
		waiting bool
	}{
		"deleted":                     {nil, holdfast.LossGone, false},
		"deleted while others wait":   {nil, holdfast.LossGone, true},
		"overwritten":                 {[]any{"SET", key("n"), "mine"}, holdfast.LossForeign, false},
		"given to another":            {[]any{"SET", key("n"), stranger}, holdfast.LossGone, false},
		"overwritten with a list":     {[]any{"LPUSH", key("n"), "mine"}, holdfast.LossForeign, false},
		"another while others wait":   {[]any{"SET", key("n"), "mine"}, holdfast.LossForeign, true},
		"a set of somebody else":      {[]any{"ZADD", key("n"), 1, "mine"}, holdfast.LossGone, false},
		"another format while I wait": {[]any{"SET", key("n"), "2mx:" + stranger[4:]}, holdfast.LossForeign, true},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				a, b, granted := s.actor("a"), s.actor("b"), time.Now()
				lease := s.lock(a, "n")
				if test.waiting {
					s.startLock(b, "n")
				}
				sleep(7 * time.Second)
				s.rdb.Del(t.Context(), key("n"))
				if test.command != nil {
					if err := s.rdb.Do(t.Context(), test.command...).Err(); err != nil {
						t.Fatal(err)
					}
				}
				if end := awaitLoss(t, lease, test.reason); !end.Equal(granted.Add(10 * time.Second)) {
					t.Errorf("told after %v, want at the second renewal", end.Sub(granted))
				}
				before := s.rdb.Dump(t.Context(), key("n")).Val()
				told := time.Now().Add(1)
				sleep(time.Minute)
				if after := s.rdb.Dump(t.Context(), key("n")).Val(); !test.waiting && after != before {
					t.Errorf("the key was changed from %q to %q", before, after)
				}
				if err := lease.Release(); !errors.Is(err, holdfast.ErrLost) {
					t.Errorf("released: %v", err)
				}
				if sent := s.commands(a, told); len(sent) != 0 {
					t.Errorf("%d commands after the loss, the first %v", len(sent), sent[0])
				}
			})
		})
	}
}
