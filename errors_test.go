package holdfast_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A HeldError names the holder and nobody else. It names nobody for a min hold.
func TestHeldError(t *testing.T) {
	since := time.Now().Add(-time.Minute)
	for want, held := range map[string]holdfast.HeldError{
		`mutex "n" is held by "a" since ` + since.Format(time.RFC3339) + `, 2s left unless renewed, 1 waiting`: {Kind: "mutex", Name: "n", Holder: "a",
			Since: since, Holders: 1, Waiters: 1, Remaining: 2 * time.Second},
		`semaphore "n" is held by "a" since ` + since.Format(time.RFC3339) + `, with 2 more, 2s left unless renewed, 0 waiting`: {Kind: "semaphore",
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
