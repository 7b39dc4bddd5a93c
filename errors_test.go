package holdfast_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A HeldError names the holder and nobody else. It names nobody for a min hold.
func TestHeldError(t *testing.T) {
	since, old := time.Now().Add(-time.Minute), time.Now().Add(-48*time.Hour)
	for want, held := range map[string]holdfast.HeldError{
		`mutex "n" is held by "a" since ` + since.Format("15:04:05") + `, 2s left unless renewed, 1 waiting`: {Kind: "mutex", Name: "n", Holder: "a",
			Since: since, Holders: 1, Waiters: 1, Remaining: 2 * time.Second},
		`mutex "n" is held by "a" since ` + old.Format("2006-01-02 15:04:05") + `, 1 waiting`: {Kind: "mutex", Name: "n", Holder: "a",
			Since: old, Holders: 1, Waiters: 1, Remaining: -1},
		`semaphore "n" is held by "a" since ` + since.Format("15:04:05") + `, with 2 more, 2s left unless renewed, 0 waiting`: {Kind: "semaphore",
			Name: "n", Holder: "a", Since: since, Holders: 3, Remaining: 2 * time.Second},
		`mutex "n" is kept from others for another 2s`:      {Kind: "mutex", Name: "n", Holders: 1, Remaining: 2 * time.Second},
		`mutex "n" is held by "a" since unknown, 1 waiting`: {Kind: "mutex", Name: "n", Holder: "a", Holders: 1, Waiters: 1, Remaining: -1},
		`mutex "n" is held by nobody, 0 waiting`:            {Kind: "mutex", Name: "n"},
		`latch "n" is set, and its count is 2`:              {Kind: "latch", Name: "n", Holders: 2},
	} {
		if got := held.Error(); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
