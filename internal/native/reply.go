package native

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A reading is a reply of ask or resume, taken apart.
type reading struct {
	answer  protocol.Answer
	late    bool
	refused error
}

// parse reads a reply; false when it is none. See ask.lua for what there is.
func (r *resource) parse(op, text string) (reading, bool) {
	var out reading
	if text == "" {
		return out, false
	}
	switch what, rest := text[0], text[1:]; what {
	case 'F', 'f':
		foreign := r.foreign(op, rest)
		if what == 'f' {
			foreign.Key = r.keys.line.(string)
		}
		out.refused = foreign
		return out, true
	case 'M':
		has, ok := number(rest)
		out.refused = &protocol.Mismatch{Name: r.spec.Name, Have: has, Want: r.spec.Permits}
		return out, ok
	case 'U':
		out.refused = &protocol.Upgrade{Name: r.spec.Name}
		return out, true
	case 'L':
		var ok bool
		out.late = true
		out.answer.Server, ok = number(rest)
		return out, ok
	case 'H':
		block, server, ok := strings.Cut(rest, "|")
		if !ok || len(block) < 17 {
			return out, false
		}
		var oks [3]bool
		out.answer.Status = protocol.Held
		out.answer.Token, oks[0] = number(block[:16])
		out.answer.Block, oks[1] = number(block[16:])
		out.answer.Server, oks[2] = number(server)
		return out, oks[0] && oks[1] && oks[2] && out.answer.Token > 0 && out.answer.Block > 0
	case 'Q', 'B':
		fields := strings.SplitN(rest, "|", 5)
		if len(fields) != 5 {
			return out, false
		}
		var numbers [4]int64
		for i := range numbers {
			var ok bool
			if numbers[i], ok = number(fields[i]); !ok {
				return out, false
			}
		}
		out.answer = protocol.Answer{
			Status:    protocol.Busy,
			Server:    numbers[0],
			Remaining: time.Duration(numbers[1]) * time.Millisecond,
			Holders:   int(numbers[2]),
			Waiters:   int(numbers[3]),
			Holder:    party(fields[4]),
		}
		if what == 'Q' {
			out.answer.Status = protocol.Queued
		}
		return out, true
	}
	return out, false
}

// party reads who is behind a ticket and its payload. What cannot be read stays empty: it is for people only.
func party(member string) protocol.Party {
	const ticket = 26
	if len(member) < ticket || member[2] == '-' { // what a min hold keeps is nobody's
		return protocol.Party{}
	}
	fields := strings.SplitN(member[ticket:], ":", 5)
	if len(fields) != 5 {
		return protocol.Party{}
	}
	channel, okC := number(fields[2])
	owner, okO := number(fields[3])
	tail := fields[4]
	if !okC || !okO || channel < 0 || owner < 0 || channel > int64(len(tail)) || owner > int64(len(tail))-channel {
		return protocol.Party{}
	}
	who := protocol.Party{Owner: tail[channel : channel+owner], Label: tail[channel+owner:]}
	if who.Owner == "" {
		who.Owner = member[4:ticket] // a hold of no owner is its own
	}
	return who
}

func number(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// timeOf reads the reply of TIME, as microseconds.
func timeOf(value any) (int64, bool) {
	parts, _ := value.([]any)
	if len(parts) != 2 {
		return 0, false
	}
	seconds, ok1 := parts[0].(string)
	micros, ok2 := parts[1].(string)
	if !ok1 || !ok2 {
		return 0, false
	}
	s, ok1 := number(seconds)
	us, ok2 := number(micros)
	return s*1e6 + us, ok1 && ok2
}

// foreign says what stands at the key, from the first bytes of it.
func (r *resource) foreign(op, is string) *protocol.Foreign {
	text := fmt.Sprintf("something that starts with %q", is)
	if len(is) == 4 && is[3] == ':' && is[0] >= '0' && is[0] <= '9' {
		if is[0] != format {
			text = fmt.Sprintf("a lock of format %c", is[0])
		} else {
			text = "held as a " + protocol.Kind(is[1]).String()
		}
	}
	return &protocol.Foreign{Op: op, Name: r.spec.Name, Key: r.keys.state.(string), Is: text,
		Want: fmt.Sprintf("a %s of format %c", r.spec.Kind, format)}
}

func (r *resource) unreadable(op string, value any) error {
	return &protocol.Failure{Op: op, Name: r.spec.Name, Reason: protocol.Other, Unknown: true,
		Err: errors.Join(errUnreadable, fmt.Errorf("%.100v", value))}
}

var errUnreadable = errors.New("the server's answer is none of ours")
