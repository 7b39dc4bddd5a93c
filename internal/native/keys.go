package native

import (
	"strconv"
	"strings"
	"sync"
)

// keys are the keys of one name, all of one slot; boxed once, as requests carry them.
type keys struct {
	state, clock, line, watchers any
	slot                         int
}

func keysOf(prefix, name string) keys {
	tag := escape(name)
	slot := slotOf(tag)
	state := prefix + ":{" + tag + "}"
	return keys{
		state:    state,
		clock:    prefix + ":{" + clockTag(slot) + "}:clock",
		line:     state + ":line",
		watchers: state + ":watchers",
		slot:     slot,
	}
}

// escape makes any name, but the empty one, a hash tag: what ends a tag is escaped, and the escape itself.
func escape(name string) string {
	if !strings.ContainsAny(name, "%}") {
		return name
	}
	return strings.NewReplacer("%", "%25", "}", "%7D").Replace(name)
}

const slots = 16384

// slotOf is the cluster slot of a hash tag: CRC16 (XMODEM) modulo 16384, as the Redis Cluster specification says.
func slotOf(tag string) int {
	var crc uint16
	for i := range len(tag) {
		crc ^= uint16(tag[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc % slots)
}

// clockTags has, for each slot, the smallest number whose base 36 hashes there. It is found when first needed.
var clockTags = sync.OnceValue(func() *[slots]uint32 {
	var tags [slots]uint32
	for n, missing := uint32(1), slots; missing > 0; n++ {
		if slot := slotOf(strconv.FormatUint(uint64(n), 36)); tags[slot] == 0 {
			tags[slot] = n
			missing--
		}
	}
	return &tags
})

func clockTag(slot int) string { return strconv.FormatUint(uint64(clockTags()[slot]), 36) }
