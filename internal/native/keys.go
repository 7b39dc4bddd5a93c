package native

import (
	"strings"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// keys are the keys of one name, all of one slot; boxed once, as requests carry them.
type keys struct {
	state, clock, queue, watchers any
	slot                          int
}

func keysOf(prefix, name string) keys {
	tag := escape(name)
	slot := wire.SlotOf(tag)
	queue := prefix + ":{" + tag + "}:queue"
	state := queue[:len(queue)-len(":queue")]
	return keys{
		state:    state,
		clock:    prefix + ":{" + wire.SlotTag(slot) + "}:clock",
		queue:    queue,
		watchers: state + ":watchers",
		slot:     slot,
	}
}

// HistoryKey returns the stream of the history of a class. Package history writes and reads it.
func HistoryKey(prefix, class string) string { return prefix + ":{" + historyTag + escape(class) + "}" }

// historyTag begins the tags of these streams. No name's tag begins so.
const historyTag = "%history:"

// escape makes any name but the empty one a hash tag: it escapes what ends a tag, and the escape
// itself.
func escape(name string) string {
	if !strings.ContainsAny(name, "%}") {
		return name
	}
	return strings.NewReplacer("%", "%25", "}", "%7D").Replace(name)
}
