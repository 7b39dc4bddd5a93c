package holdfast_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A HeldError names the holder and nobody else. It names nobody for a min hold, and for a hold to
// resume that is not there.
func TestHeldError(t *testing.T) {
	for want, held := range map[string]holdfast.HeldError{
		`mutex "n" is held by "a" for another 2s, 1 waiting`: {Kind: "mutex", Name: "n", Holder: "a", Holders: 1, Waiters: 1, Remaining: 2 * time.Second},
		`mutex "n" is kept from others for another 2s`:       {Kind: "mutex", Name: "n", Holders: 1, Remaining: 2 * time.Second},
		`mutex "n" is held by "a", 1 waiting`:                {Kind: "mutex", Name: "n", Holder: "a", Holders: 1, Waiters: 1, Remaining: -1},
		`mutex "n" is held by nobody, 0 waiting`:             {Kind: "mutex", Name: "n"},
		`latch "n" is set: 2 have yet to count down`:         {Kind: "latch", Name: "n", Holders: 2},
	} {
		if got := held.Error(); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
