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
	line := prefix + ":{" + tag + "}:line"
	state := line[:len(line)-len(":line")]
	return keys{
		state:    state,
		clock:    prefix + ":{" + clockTag(slot) + "}:clock",
		line:     line,
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

// crcs are the remainders of four bits by the polynomial of CRC16 (XMODEM), 0x1021.
var crcs = [16]uint16{0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5, 0x60c6, 0x70e7,
	0x8108, 0x9129, 0xa14a, 0xb16b, 0xc18c, 0xd1ad, 0xe1ce, 0xf1ef}

// slotOf is the cluster slot of a hash tag: CRC16 (XMODEM) modulo 16384, as the Redis Cluster specification says.
func slotOf(tag string) int {
	var crc uint16
	for i := range len(tag) {
		crc = crc<<4 ^ crcs[crc>>12^uint16(tag[i]>>4)]
		crc = crc<<4 ^ crcs[crc>>12^uint16(tag[i]&15)]
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
