package show

import (
	"fmt"
	"time"
)

// Age shows a duration in at most six characters: 0.4s, 13s, 3m05s, 2h07m, 4d02h, 120d.
func Age(d time.Duration) string {
	d = max(d, 0)
	const day = 24 * time.Hour
	if d < 9950*time.Millisecond {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	switch d = d.Round(time.Second); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	case d < 100*day:
		return fmt.Sprintf("%dd%02dh", d/day, d%day/time.Hour)
	}
	return fmt.Sprintf("%dd", d/day)
}

// ageText shows how long ago something was, and "?" if that is not known.
func ageText(then, now time.Time) string {
	if then.IsZero() {
		return "?"
	}
	return Age(now.Sub(then))
}
