package native

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// slotOfKey is the slot of a whole key, as the Redis Cluster specification says: that of what
// stands between the first "{" and the first "}" behind it, if that is not empty.
func slotOfKey(key string) int {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			return wire.SlotOf(tag)
		}
	}
	return wire.SlotOf(key)
}

// FuzzKeys: whatever the names, the keys of each lie in one slot, and no two names share a key
// (trap 27); nor do two prefixes, whatever the names under them. Those of a quorum, of which a
// server may be a node, are never a name's.
func FuzzKeys(f *testing.F) {
	for _, pair := range [][2]string{{"a", "b"}, {"}", "%7D"}, {"%7D", "%257D"}, {"{", "{{"}, {"a}b", "a"},
		{"}x", "}y"}, {"\x00", "\xff"},
		{"a", "a}:queue"}, {"x:clock", "x"}, {"@p", "p"}, {"%quorum", "quorum"}} {
		f.Add("p", pair[0], "p", pair[1])
		f.Add("p", pair[0], "p:", pair[1])
		f.Add("", pair[0], ":", pair[1])
	}
	f.Fuzz(func(t *testing.T, prefix, one, second, other string) {
		if one == "" || other == "" || strings.ContainsAny(prefix+second, "{}") {
			t.Skip("refused before")
		}
		a, b := keysOf(prefix, one), keysOf(second, other)
		for _, key := range []any{a.state, a.clock, a.queue, a.watchers} {
			if strings.HasPrefix(key.(string), second+":{%quorum}") {
				t.Errorf("key %q of %q is a quorum's", key, one)
			}
			if got := slotOfKey(key.(string)); got != a.slot {
				t.Errorf("key %q of %q lies in slot %d, not %d", key, one, got, a.slot)
			}
		}
		if same := prefix == second && one == other; (a.state == b.state) != same || (a.queue == b.queue) != same ||
			(a.watchers == b.watchers) != same {
			t.Errorf("%q and %q: %q and %q", one, other, a.state, b.state)
		}
		if a.clock == b.clock != (prefix == second && a.slot == b.slot) {
			t.Errorf("%q and %q: clocks %q and %q", one, other, a.clock, b.clock)
		}
		for _, key := range []any{b.clock, b.queue, b.watchers} {
			if a.state == key || a.queue == key && key != b.queue || a.watchers == key && key != b.watchers ||
				a.clock == key && key != b.clock {
				t.Errorf("%q and %q share %q", one, other, key)
			}
		}
		for _, key := range []any{a.state, a.queue} {
			if name, is := readKey(strings.TrimPrefix(key.(string), prefix+":")); is != keyOfName || name != one {
				t.Errorf("key %q of %q was read as %q, %d", key, one, name, is)
			}
		}
		for _, key := range []any{a.clock, a.watchers} {
			if name, is := readKey(strings.TrimPrefix(key.(string), prefix+":")); is != keyBeside {
				t.Errorf("key %q of %q was read as %q, %d", key, one, name, is)
			}
		}
		p, q := New(nil, Config{Prefix: prefix, Process: "x"}), New(nil, Config{Prefix: second, Process: "x"})
		for _, mark := range []string{plain, broadcast, sharded} {
			p.marked.Store(&mark)
			q.marked.Store(&mark)
			at, theirs := p.channelFor(&a, p.config.Process)[1:], q.channelFor(&b, q.config.Process)[1:]
			if mark == sharded && slotOfKey(at) != a.slot {
				t.Errorf("channel %q of %q lies in slot %d, not %d", at, one, slotOfKey(at), a.slot)
			}
			if at == theirs && prefix != second {
				t.Errorf("prefixes %q and %q share the channel %q", prefix, second, at)
			}
		}
	})
}

// Keys under the prefix that no client of this format makes are told as they are.
func TestReadKeyOfOthers(t *testing.T) {
	for rest, want := range map[string]keyUse{
		"": keyForeign, "x": keyForeign, "{": keyForeign, "{}": keyForeign, "{}:queue": keyForeign, "{a": keyForeign,
		"a{a}": keyForeign,
		"{a}b": keyForeign, "{a}:line": keyForeign, "{a}}": keyForeign, "{%}": keyForeign, "{%7d}": keyForeign,
		"{a%2}":                         keyForeign,
		"{not the tag of a slot}:clock": keyForeign, "@host/1/abc": keyForeign,
		"{%quorum}": keyBeside, "{%quorum}:name": keyBeside, "{%quorum}+name": keyBeside, "{%25quorum}": keyOfName,
	} {
		if name, is := readKey(rest); is != want || is == keyOfName && name != "%quorum" {
			t.Errorf("%q was read as %q, %d", rest, name, is)
		}
	}
}
