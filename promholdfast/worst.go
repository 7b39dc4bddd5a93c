package promholdfast

import (
	"cmp"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/lockinfo"
)

// A worstName is a name with one of the longest waits.
type worstName struct {
	lockKey
	name string // as the value of a label
	wait time.Duration
}

// addWorst adds a name to the worst, if it is one of them.
func (c *Collector) addWorst(worst []worstName, key lockKey, info lockinfo.Info) []worstName {
	added := worstName{key, labelValue(info.Name), info.LongestWait()}
	if c.options.Worst <= 0 || info.WaitingSince.IsZero() || slices.ContainsFunc(worst,
		func(w worstName) bool { return w.name == added.name }) { // a scrape with one series twice fails
		return worst
	}
	at, _ := slices.BinarySearchFunc(worst, added, func(a, b worstName) int {
		return cmp.Or(cmp.Compare(b.wait, a.wait), cmp.Compare(a.name, b.name))
	})
	worst = slices.Insert(worst, at, added)
	return worst[:min(len(worst), c.options.Worst)]
}

// labelValue returns a name as the value of a label, which must be UTF-8: quoted if it is none.
func labelValue(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	return strconv.Quote(name)
}
