package wire

import (
	"crypto/sha1" //nolint:gosec // the server names scripts by it
	"encoding/hex"
	"testing"
)

// Trap 30: nothing computes SHA-1 at run time, so the digest is a constant.
func TestProbeDigest(t *testing.T) {
	sum := sha1.Sum([]byte(Source(probeFiles, "ready"))) //nolint:gosec // as above
	if got := hex.EncodeToString(sum[:]); got != probeDigest {
		t.Errorf("the digest of ready.lua is %s, not %s", got, probeDigest)
	}
}
