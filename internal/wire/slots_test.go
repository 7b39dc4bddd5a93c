package wire

import "testing"

// The value that the specification itself gives.
func TestSlotOf(t *testing.T) {
	if got := SlotOf("123456789"); got != 0x31C3 {
		t.Errorf("slot %d, want %d", got, 0x31C3)
	}
}

// Every slot has a tag of its own.
func TestSlotTag(t *testing.T) {
	for slot := range Slots {
		if got := SlotOf(SlotTag(slot)); got != slot {
			t.Fatalf("the tag of slot %d lies in slot %d", slot, got)
		}
	}
}
