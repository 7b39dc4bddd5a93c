package wire

import (
	"strconv"
	"strings"
	"sync"
)

// Slots is how many slots a cluster has.
const Slots = 16384

// crcs are the remainders of four bits by the polynomial of CRC16 (XMODEM), 0x1021.
var crcs = [16]uint16{0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5, 0x60c6, 0x70e7,
	0x8108, 0x9129, 0xa14a, 0xb16b, 0xc18c, 0xd1ad, 0xe1ce, 0xf1ef}

// SlotOf returns the cluster slot of a hash tag: CRC16 (XMODEM) modulo 16384, as the Redis Cluster
// specification says.
func SlotOf(tag string) int {
	var crc uint16
	for i := range len(tag) {
		crc = crc<<4 ^ crcs[crc>>12^uint16(tag[i]>>4)]
		crc = crc<<4 ^ crcs[crc>>12^uint16(tag[i]&15)]
	}
	return int(crc % Slots)
}

// tags has, for each slot, the smallest number whose base 36 hashes there. It is found when first
// needed.
var tags = sync.OnceValue(func() *[Slots]uint32 {
	var tags [Slots]uint32
	for n, missing := uint32(1), Slots; missing > 0; n++ {
		if slot := SlotOf(strconv.FormatUint(uint64(n), 36)); tags[slot] == 0 {
			tags[slot] = n
			missing--
		}
	}
	return &tags
})

// SlotTag returns a short fixed hash tag that lies in the slot.
func SlotTag(slot int) string { return strconv.FormatUint(uint64(tags()[slot]), 36) }

// slotOfKey returns the slot of a key: that of its hash tag, if it has one. A request without a key
// may go anywhere; its slot is 0.
func slotOfKey(key string) int {
	if key == "" {
		return 0
	}
	if tag, ok := hashTag(key); ok {
		return SlotOf(tag)
	}
	return SlotOf(key)
}

// hashTag returns what stands between the first brace and the next closing one, if that is
// anything.
func hashTag(key string) (string, bool) {
	_, rest, open := strings.Cut(key, "{")
	end := strings.Index(rest, "}")
	if !open || end <= 0 {
		return "", false
	}
	return rest[:end], true
}
