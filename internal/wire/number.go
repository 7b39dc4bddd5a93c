package wire

import (
	"strconv"
	"time"
)

// Digits16 writes a number as scripts compare numbers: sixteen digits. A negative number is written
// as 0.
func Digits16(n int64) string {
	const zeros = "0000000000000000"
	buf := strconv.AppendInt(make([]byte, 0, 20), max(n, 0), 10)
	return zeros[min(len(buf), len(zeros)):] + string(buf)
}

// Number reads a decimal number as scripts write it.
func Number(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// Millis returns a duration as scripts take it: whole milliseconds, never 0.
func Millis(d time.Duration) int64 { return max(1, d.Milliseconds()) }

// ServerTime reads the reply of TIME, as microseconds.
func ServerTime(value any) (int64, bool) {
	parts, _ := value.([]any)
	if len(parts) != 2 {
		return 0, false
	}
	seconds, ok1 := parts[0].(string)
	micros, ok2 := parts[1].(string)
	if !ok1 || !ok2 {
		return 0, false
	}
	s, ok1 := Number(seconds)
	us, ok2 := Number(micros)
	return s*1e6 + us, ok1 && ok2
}
