package wire

import (
	"testing"
	"time"
)

// A not-after is the earliest that the server's clock can show at a local time. An old answer gives
// none.
func TestClockNotAfter(t *testing.T) {
	var c Clock
	now := time.Now()
	if _, ok := c.NotAfter(now); ok {
		t.Error("known before the first answer")
	}
	c.Observe(1_795_231_125_887_127, now)
	if got, ok := c.NotAfter(now.Add(time.Second)); !ok || got != "1795231126887127" {
		t.Errorf("a second later: %s, %v", got, ok)
	}
	if _, ok := c.NotAfter(now.Add(fresh + time.Second)); ok {
		t.Error("told from an old answer")
	}
}

// Scripts compare numbers as text: sixteen digits, whatever the number (trap 40).
func TestDigits16(t *testing.T) {
	for n, want := range map[int64]string{0: "0000000000000000", -5: "0000000000000000", 7: "0000000000000007",
		1_795_231_125_887_127: "1795231125887127", 1<<53 - 1: "9007199254740991"} {
		if got := Digits16(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
