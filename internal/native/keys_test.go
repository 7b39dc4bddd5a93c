package native

import (
	"strings"
	"testing"
)

// slotOfKey is the slot of a whole key, as the Redis Cluster specification says: that of what stands between the first
// "{" and the first "}" behind it, if that is not empty.
func slotOfKey(key string) int {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			return slotOf(tag)
		}
	}
	return slotOf(key)
}

// The two values that the specification itself gives.
func TestSlots(t *testing.T) {
	for key, want := range map[string]int{"123456789": 0x31C3, "{user1000}.following": slotOf("user1000")} {
		if got := slotOfKey(key); got != want {
			t.Errorf("slot of %q is %d, want %d", key, got, want)
		}
	}
}

// FuzzKeys: whatever the names, the keys of each lie in one slot, and no two names share a key (trap 27).
func FuzzKeys(f *testing.F) {
	for _, pair := range [][2]string{{"a", "b"}, {"}", "%7D"}, {"%7D", "%257D"}, {"{", "{{"}, {"a}b", "a"}, {"}x", "}y"}, {"\x00", "\xff"}} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, one, other string) {
		if one == "" || other == "" {
			t.Skip("an empty name is refused before")
		}
		a, b := keysOf("p", one), keysOf("p", other)
		for _, key := range []any{a.state, a.clock, a.line, a.watchers} {
			if got := slotOfKey(key.(string)); got != a.slot {
				t.Errorf("key %q of %q lies in slot %d, not %d", key, one, got, a.slot)
			}
		}
		if (a.state == b.state) != (one == other) {
			t.Errorf("%q and %q: %q and %q", one, other, a.state, b.state)
		}
		for _, key := range []any{b.clock, b.line, b.watchers} {
			if a.state == key || one != other && key != b.clock && (key == a.line || key == a.watchers || key == a.clock) {
				t.Errorf("%q and %q share %q", one, other, key)
			}
		}
	})
}

// FuzzReplies: no reply of a server makes a client panic, and one that is read as a grant has a token.
func FuzzReplies(f *testing.F) {
	for _, text := range []string{"", "H17952311258871271|1795231125887127", "Q1795231125887127|15000|1|0|1mx:0123456789012345678901500:1:2:2:chowner",
		"B|||", "L1795231125887127", "F1sx:", "H|", "B1|2|3|4|1mx:0123456789012345678901500:1:9999:2:x"} {
		f.Add(text)
	}
	r := New(nil, Config{Prefix: "p", Process: "x"}).Bind(specOf("n")).(*resource)
	f.Fuzz(func(t *testing.T, text string) {
		reading, ok := r.parse("lock", text)
		if ok && text[0] == 'H' && (reading.answer.Token <= 0 || reading.answer.Block <= 0) {
			t.Errorf("%q was read as a grant without a token", text)
		}
		ear{suffix: ":@x", sink: deafSink{}}.Message("p:@x", text)
	})
}
