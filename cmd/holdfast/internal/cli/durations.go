package cli

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// A Duration is a flag of seconds, as those of flock, or of a duration: 5, 0.5, 5s.
type Duration time.Duration

// DurationVar adds a flag with a duration.
func DurationVar(flags *pflag.FlagSet, to *time.Duration, name, short string, value time.Duration, usage string) {
	*to = value
	flags.VarP((*Duration)(to), name, short, usage)
}

// Set implements pflag.Value.
func (d *Duration) Set(text string) error {
	parsed, err := ParseDuration(text)
	if err != nil {
		return err
	}
	*d = Duration(parsed)
	return nil
}

// String implements pflag.Value. It is empty for 0, which is no default to show.
func (d *Duration) String() string {
	if *d == 0 {
		return ""
	}
	return durationText(time.Duration(*d))
}

// Type implements pflag.Value.
func (d *Duration) Type() string { return "duration" }

// durationText is a duration without units that are 0: 5m and not 5m0s.
func durationText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// ParseDuration reads seconds or a duration. More than can be counted is the most.
func ParseDuration(text string) (time.Duration, error) {
	if text != "" && strings.Trim(text, "+-.0123456789") == "" {
		if seconds, err := strconv.ParseFloat(text, 64); err == nil {
			const most = float64(math.MaxInt64 / int64(time.Second))
			return time.Duration(min(max(seconds, -most), most) * float64(time.Second)), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil {
		return d, nil
	}
	return 0, errors.New("it must be seconds or a duration, such as 5, 0.5 or 2m")
}
