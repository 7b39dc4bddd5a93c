package quorum

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// The keys of the name x, and of what a master knows of itself.
const (
	factsKey    = "q:{%quorum}"
	stateKey    = "q:{%quorum}:x"
	waitersKey  = "q:{%quorum}+x"
	watchersKey = "q:{%quorum}=x"
)

// holdField returns the field of a hold in the state of a name, and brokenField that of its
// remainder once it was broken.
func holdField(n int) string   { return string(ticketID(n)) }
func brokenField(n int) string { return "-" + holdField(n) }

// holdValue returns what a master keeps of a hold without owner and label, for a minute.
func holdValue(mode string, first, last int64) string {
	return holdValueUntil(mode, time.Now().Add(time.Minute), first, last)
}

func holdValueUntil(mode string, end time.Time, first, last int64) string {
	ends := wire.Digits16(end.UnixMilli())[16-(firstAt-endAt):]
	return withTokens(mode+ends+wire.Digits16(0)+wire.Digits16(0)+wire.Digits16(1)+"60000:0:0:0:", first, last)
}

// withTokens returns the value of a hold with other tokens.
func withTokens(value string, first, last int64) string {
	return value[:firstAt] + wire.Digits16(first) + wire.Digits16(last) + value[roundAt:]
}

// tokensOf returns the first and the last token that the value of a hold has, one behind the other.
func tokensOf(value string) string { return value[firstAt:roundAt] }

// storeHold writes a hold into masters.
func storeHold(t *testing.T, n int, value string, servers ...wire.Store) {
	t.Helper()
	commandAll(t, servers, "HSET", stateKey, holdField(n), value)
}

// storedFields returns what a master keeps of x: by id, and "-" before that of a remainder.
func storedFields(t *testing.T, s wire.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	words, _ := command(t, s, "HGETALL", stateKey).([]any)
	for i := 0; i < len(words); i += 2 {
		all[words[i].(string)] = words[i+1].(string)
	}
	return all
}

// storedHold returns what a master keeps of a hold.
func storedHold(t *testing.T, s wire.Store, n int) string {
	t.Helper()
	return storedFields(t, s)[holdField(n)]
}

// keepsHold reports whether a master keeps a hold.
func keepsHold(t *testing.T, s wire.Store, n int) bool {
	t.Helper()
	return storedHold(t, s, n) != ""
}

// untilFree waits until no master keeps a hold. It would be there for a minute.
func untilFree(t *testing.T, servers []wire.Store, n int) {
	t.Helper()
	until(t, "all is given back", func() bool {
		return countAll(t, servers, "HEXISTS", stateKey, holdField(n)) == 0
	})
}

// expiryOf returns when a hold, or what is left of it, ends at its master.
func expiryOf(t *testing.T, value string) time.Time {
	t.Helper()
	if len(value) < payloadAt {
		t.Fatalf("no hold: %q", value)
	}
	at, _ := wire.Number(value[endAt:firstAt])
	return time.UnixMilli(at)
}
