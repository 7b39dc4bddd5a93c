package holdfast

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
)

// An Option changes how one lock is held or waited for. Later options win. A bad value, or an option that has no
// meaning for the lock, is an *ArgumentError from each method of the handle, before anything is sent.
type Option func(*settings)

// settings are the options of a handle before they are checked.
type settings struct {
	engine.Options
	ttlSet   bool
	polling  bool
	owner    string
	ownerSet bool
	label    string
	labelSet bool
	minSet   bool
	maxSet   bool
}

// WithTTL sets how long the lock outlives its holder, instead of Config.TTL: from 100 ms to Config.MaxTTL, in whole
// milliseconds (rounded down).
func WithTTL(ttl time.Duration) Option {
	return func(s *settings) { s.TTL, s.ttlSet = ttl, true }
}

// WithoutRenewal gives a fixed lease: it ends a TTL after it was granted, whatever its holder does.
func WithoutRenewal() Option {
	return func(s *settings) { s.Fixed = true }
}

// WithMaxHold bounds how long one lease lasts, however well it is renewed: at least 100 ms. The expiry at the server is never
// set past it, and the lease's context ends a margin earlier with a *LostError. One below the TTL lowers the TTL.
func WithMaxHold(d time.Duration) Option {
	return func(s *settings) { s.MaxHold, s.maxSet = d, true }
}

// WithMinHold keeps others out for so long from the moment of the grant, even if the lock is released earlier or its
// holder crashes: above 0, not above Config.MaxTTL, and not above the max hold. Release returns at once all the same.
func WithMinHold(d time.Duration) Option {
	return func(s *settings) { s.MinHold, s.minSet = d, true }
}

// WithPolling makes Lock ask every interval, at most so many times, instead of standing in line: at least 1 ms; attempts 0
// means until ctx ends. Attempts that ran out are an ErrHeld. Who polls has no place in the order and may never get in
// while others wait in line.
func WithPolling(interval time.Duration, attempts int) Option {
	return func(s *settings) { s.Interval, s.Attempts, s.polling = interval, attempts, true }
}

// WithOwner names the owner: 1 byte to 1 KiB, any bytes. Holds of one owner do not exclude each other, whichever process
// they are in; the lock is free when all are released. Every entry stands in the server's queue itself.
func WithOwner(id string) Option {
	return func(s *settings) { s.owner, s.ownerSet = id, true }
}

// WithStrictOrder makes every goroutine stand in the server's queue itself, so that a lock never passes from goroutine to
// goroutine of one process while another process waits longer. Order is strict only if all users of the name say so.
func WithStrictOrder() Option {
	return func(s *settings) { s.Strict = true }
}

// WithLabel tells others who holds this lock, instead of Config.Label: at most 1 KiB, any bytes.
func WithLabel(label string) Option {
	return func(s *settings) { s.label, s.labelSet = label, true }
}

// settled applies options for a kind of lock, and checks them and the name.
func (c *Client) settled(kind, name string, options []Option) (settings, error) {
	s := c.apply(options)
	if bad := s.wrong(name, c.config.MaxTTL); bad != nil {
		return s, bad.err(fmt.Sprintf("%s(%q)", kind, shortened(name)))
	}
	return s.agreed(), nil
}

// apply gives the defaults, changed by options.
func (c *Client) apply(options []Option) settings {
	s := settings{label: c.config.Label}
	s.TTL = c.config.TTL
	for _, option := range options {
		if option != nil {
			option(&s)
		}
	}
	return s
}

// agreed are settings that were checked, made to agree with each other.
func (s settings) agreed() settings {
	if s.maxSet && s.MaxHold < s.TTL {
		s.TTL = s.MaxHold
	}
	s.TTL = s.TTL.Truncate(time.Millisecond)
	return s
}

// meaningless are the options that were given, but for those that the type of lock knows.
func (s *settings) meaningless(what string, known ...string) (bad problems) {
	for _, option := range []struct {
		name  string
		given bool
		value any
	}{
		{"WithTTL", s.ttlSet, s.TTL}, {"WithoutRenewal", s.Fixed, nil}, {"WithMaxHold", s.maxSet, s.MaxHold}, {"WithMinHold", s.minSet, s.MinHold},
		{"WithPolling", s.polling, s.Interval}, {"WithOwner", s.ownerSet, shortened(s.owner)}, {"WithStrictOrder", s.Strict, nil},
		{"WithLabel", s.labelSet, shortened(s.label)},
	} {
		if option.given && !slices.Contains(known, option.name) {
			bad.add(option.name, option.value, "not for "+what)
		}
	}
	return bad
}

// wrong is all that is wrong with a name and its options.
func (s *settings) wrong(name string, longest time.Duration) (bad problems) {
	if name == "" || len(name) > maxText {
		bad.add("name", shortened(name), "from 1 to 1024 bytes")
	}
	if s.TTL < minTTL || s.TTL > longest {
		bad.add("WithTTL", s.TTL, fmt.Sprintf("from 100ms to Config.MaxTTL, %v", longest))
	}
	if s.maxSet && s.MaxHold < minTTL {
		bad.add("WithMaxHold", s.MaxHold, "at least 100ms")
	}
	if s.minSet && (s.MinHold <= 0 || s.MinHold > longest) {
		bad.add("WithMinHold", s.MinHold, fmt.Sprintf("above 0, at most Config.MaxTTL, %v", longest))
	}
	if s.minSet && s.maxSet && s.MinHold > s.MaxHold {
		bad.add("WithMinHold", s.MinHold, fmt.Sprintf("at most the max hold, %v", s.MaxHold))
	}
	if s.polling && s.Interval < time.Millisecond {
		bad.add("WithPolling interval", s.Interval, "at least 1ms")
	}
	if s.polling && s.Attempts < 0 {
		bad.add("WithPolling attempts", s.Attempts, "at least 0")
	}
	if s.ownerSet && (s.owner == "" || len(s.owner) > maxText) {
		bad.add("WithOwner", shortened(s.owner), "from 1 to 1024 bytes")
	}
	if len(s.label) > maxText {
		bad.add("WithLabel", shortened(s.label), "at most 1024 bytes")
	}
	return bad
}

// shortened keeps errors readable.
func shortened(s string) string {
	if len(s) <= 64 {
		return s
	}
	return fmt.Sprintf("%s... (%d bytes)", s[:40], len(s))
}
