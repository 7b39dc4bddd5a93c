package dashboard

import (
	"slices"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/lockinfo"
)

// A row is what the list shows of a name.
type row struct {
	ID    uint64        `json:"id"`              // while the name is there
	Lock  lockinfo.Info `json:"lock"`            // its summary
	Hosts []string      `json:"hosts,omitempty"` // of the holds, the first maxHosts
	Waits []wait        `json:"waits,omitempty"`
	Root  bool          `json:"root,omitempty"`
}

const maxHosts = 10

func newRow(e *entry) row { return row{e.id, e.info.Summary(), hostsOf(e.info), e.waits, e.root} }

// hostsOf returns the hosts of the holds, the first maxHosts.
func hostsOf(info lockinfo.Info) (hosts []string) {
	for _, h := range info.Holds {
		if h.Host != "" && len(hosts) < maxHosts && !slices.Contains(hosts, h.Host) {
			hosts = append(hosts, h.Host)
		}
	}
	return hosts
}

// equalRows reports whether a row is as it was. The end of a hold is computed from what remained at
// the time of a poll, so it may differ by a little.
func equalRows(old, e *entry) bool {
	before, now := old.info, e.info
	a, held := before.Holder()
	b, _ := now.Holder()
	if held && before.At.Add(a.Remaining).Sub(now.At.Add(b.Remaining)).Abs() >= 50*time.Millisecond {
		return false
	}
	a.Remaining, a.Renewed, b.Remaining, b.Renewed = 0, time.Time{}, 0, time.Time{}
	type others struct {
		kind             lockinfo.Kind
		class            string
		state            lockinfo.State
		holders, waiters int
		numbers          [3]int64
		waiting          int64 // since when
		late             bool
		foreign          string
	}
	othersOf := func(i lockinfo.Info) others {
		return others{i.Kind, i.Class, i.State(), i.Holders, i.Waiters, [3]int64{i.Permits, i.Taken, i.Count},
			i.WaitingSince.UnixMicro(), i.Late(), i.Foreign}
	}
	return a == b && othersOf(before) == othersOf(now) && slices.Equal(hostsOf(before), hostsOf(now)) &&
		slices.Equal(old.waits, e.waits) && old.root == e.root
}

// nonTextBytes returns the bytes of a name that JSON cannot have as a text, and nil for any other.
func nonTextBytes(name string) []byte {
	if utf8.ValidString(name) {
		return nil
	}
	return []byte(name)
}
