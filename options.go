package holdfast

import (
	"fmt"
	"maps"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/limits"
)

// An Option changes how one lock is held or waited for. Later options win. An option works alike
// wherever it has a meaning. Where it has none, or its value is bad, each method of the handle
// returns an *ArgumentError, and sends nothing.
//
//	                  Mutex  RWMutex  Semaphore  Latch  Election  Group
//	WithTTL           yes    yes      yes        yes    yes       yes
//	WithoutRenewal    yes    yes      yes        -      yes       yes
//	WithMaxHold       yes    yes      yes        -      yes       yes
//	WithMinHold       yes    yes      yes        -      yes       yes
//	WithPolling       yes    yes      yes        -      yes       yes
//	WithOwner         yes    yes      -          -      -         yes
//	WithStrictOrder   yes    yes      yes        -      yes       yes
//	WithLabel         yes    yes      yes        -      yes       yes
//	WithWait          yes    yes      yes        yes    yes       yes
//	WithDeadlockCheck yes    yes      -          -      yes       yes
//	WithUnder         yes    yes      -          -      yes       yes
//	WithRetain        yes    yes      -          -      -         -
//	WithoutRecall     yes    yes      -          -      -         yes
//	WithWanted        yes    yes      -          -      yes       yes
type Option func(*settings)

// settings are the options of a handle before they are checked.
type settings struct {
	engine.Options
	given optionSet
	owner string
	label string

	noQueue bool // the client's servers have no queue
}

// An optionSet says which options were given.
type optionSet uint

const (
	optTTL optionSet = 1 << iota
	optFixed
	optMaxHold
	optMinHold
	optPolling
	optOwner
	optStrict
	optLabel
	optWait
	optDeadlockCheck
	optUnder
	optRetain
	optNoRecall
	optWanted
)

// meaningless has the options that have no meaning for a type, and are refused. The table at Option
// says the same, and a test compares them. The key is the kind that Client.newSettings is called
// with.
var meaningless = map[string]optionSet{
	// No single hold of it excludes others.
	"Semaphore": optOwner | optDeadlockCheck | optUnder | optRetain | optNoRecall | optWanted,
	"Latch": optFixed | optMaxHold | optMinHold | optPolling | optOwner | optStrict | optLabel |
		optDeadlockCheck | optUnder | optRetain | optNoRecall | optWanted, // nobody holds it
	"Election": optOwner | optRetain | optNoRecall, // two of one owner would both lead, and no leader retains
	"Group":    optRetain,                          // its names are taken together, in one request
}

func (s *settings) isGiven(option optionSet) bool { return s.given&option != 0 }

// WithTTL sets how long the lock outlives its holder, instead of Config.TTL. It is from 100 ms to
// Config.MaxTTL, in whole milliseconds (rounded down).
func WithTTL(ttl time.Duration) Option {
	return func(s *settings) { s.TTL, s.given = ttl, s.given|optTTL }
}

// WithoutRenewal gives a fixed lease. It ends a TTL after it was granted, unless its holder extends
// it by Lease.Extend.
func WithoutRenewal() Option {
	return func(s *settings) { s.Fixed, s.given = true, s.given|optFixed }
}

// WithMaxHold bounds how long one lease lasts, however well it is renewed; at least 100 ms. The
// lease's contexts end a margin earlier, with a *LostError. A max hold below the TTL lowers the
// TTL.
//
// The lease ends by the clocks of its process, and the expiry at the server is never set past the
// max hold. If the server's clock is set back, the server keeps a hold that nobody releases for as
// much longer. See Client.Attach for a lease that changes its process.
func WithMaxHold(d time.Duration) Option {
	return func(s *settings) { s.MaxHold, s.given = d, s.given|optMaxHold }
}

// WithMinHold keeps others out for so long from the grant, even if the lock is released earlier or
// its holder crashes. It is above 0, and at most the smaller of Config.MaxTTL and the max hold.
// Release returns at once all the same. A hold that was downgraded keeps out writers, and lets
// readers in.
func WithMinHold(d time.Duration) Option {
	return func(s *settings) { s.MinHold, s.given = d, s.given|optMinHold }
}

// WithPolling makes Lock ask every interval, at least 1 ms, instead of standing in the queue. Lock
// asks at most so many times, and then returns an error that matches ErrHeld. If attempts is 0, it
// asks until ctx ends. It may never get in while others wait in the queue.
func WithPolling(interval time.Duration, attempts int) Option {
	return func(s *settings) { s.Interval, s.Attempts, s.given = interval, attempts, s.given|optPolling }
}

// WithOwner names the owner: 1 byte to 1 KiB, any bytes. Holds of one owner do not exclude each
// other, in whichever process they are. The lock is free when all of them are released. Every entry
// stands in the server's queue itself. RWMutex says what an owner of it may enter.
func WithOwner(id string) Option {
	return func(s *settings) { s.owner, s.given = id, s.given|optOwner }
}

// WithStrictOrder makes every goroutine stand in the server's queue itself. A lock then never
// passes from goroutine to goroutine of one process while another process waits longer. Order is
// strict only if all users of the name set this option.
func WithStrictOrder() Option {
	return func(s *settings) { s.Strict, s.given = true, s.given|optStrict }
}

// WithWait bounds the waiting of one call, instead of Config.Wait; it is above 0. When the time is
// over, the call returns a *WaitError. It matches ErrHeld and ErrWaitOver if another holds, and
// ErrUnavailable if no server answered. A group waits for all of its names in that time. Of an
// Election it bounds each campaign, so Run ends with the *WaitError. TryLock ignores it.
func WithWait(d time.Duration) Option {
	return func(s *settings) { s.Wait, s.given = d, s.given|optWait }
}

// WithLabel names the holder to other clients, instead of Config.Label; at most 1 KiB, any bytes.
func WithLabel(label string) Option {
	return func(s *settings) { s.label, s.given = label, s.given|optLabel }
}

// WithDeadlockCheck ends a wait that would last for ever, as callers wait for each other in a
// cycle. It is for callers that lock one name while they hold another, where no order of names can
// be kept. In a cycle of callers with this option, the call that began to wait last ends. Its error
// is a *WaitError whose Reason is WaitDeadlock, and whose Deadlock names the cycle. The caller
// should release what it holds, and begin anew. If cycles have callers in common, a call of each
// ends.
//
// The leases under which a caller waits are those that the context of the call carries, at most
// eight, the inner ones first. The names that a Group has while it waits for the others count as
// well. So hold them until the call returns, or give the call a context without them.
//
// The caller looks once when it has waited for a TTL, at most a minute. It looks less and less
// often then, down to once a minute. One look takes at most 100 requests, each of which only reads
// one name. A cycle counts when two looks agree and all of its callers have asked the server in
// between. So it ends some 10 s after a first look, and a crash is no deadlock.
//
// A caller with this option and with leases stands in the server's queue itself, as with
// WithStrictOrder. It joins anew if one of the leases is released while others keep its hold. The
// holds of these leases do not pass on inside the process.
//
// Not seen are cycles through a Semaphore or a Latch, and over more than about 100 names. Nor are
// cycles with a caller that does not set the option, or holds the name by a lease of another
// Client. A quorum and WithPolling refuse the option, as they have no queue.
func WithDeadlockCheck() Option {
	return func(s *settings) { s.DeadlockCheck, s.given = true, s.given|optDeadlockCheck }
}

// WithUnder says that the caller waits for a program that holds names by leases of other clients,
// such as the one that started this process. It has the token of each lease, by name. The place of
// the caller in a queue names those holds, as it names the leases of WithDeadlockCheck, up to eight
// in all. So [Client.Deadlocks] and [Client.Why] know for certain what waits for what. It ends no
// wait by itself. It has no effect for a name that is held with another token by now, with
// WithPolling, and at a quorum. The call sends a request more for each name.
func WithUnder(tokens map[string]int64) Option {
	under := engine.Tokens(maps.Clone(tokens))
	return func(s *settings) {
		s.Under, s.given = nil, s.given|optUnder
		if len(under) > 0 {
			s.Under = &under
		}
	}
}

// WithRetain lets a lease that is released stay with its process, unused, for at most idle since it
// was used last. The next Lock or TryLock of the name by any goroutine of the client then sends no
// request, and its Release sends none. It is for names that a process locks again and again while
// no other one wants them. Idle is from 1 ms to 1 h.
//
// A name is retained from its second lock on that comes within idle of the use before. At most
// Config.RetainMax names are retained at one moment, those used last. The lock has the
// Config.RetainTTL if that is less than its TTL, so a process that crashes keeps others out for no
// longer. The client renews what it retains, and is subscribed for as long as it retains anything.
//
// Each lease of a Mutex or of a writer has a larger token than each before, in whichever process. A
// block of tokens is reserved with one request. Readers have the token of the hold that they enter.
//
// Others get in as before. When another process asks, the server tells this one in the same round
// trip. An unused name is given back at once. A used one goes to the queue at its release, before
// this process can lock it again. A writer recalls all readers that retain. After a recall the name
// is not retained for 50 ms, and for twice as long after each further one, up to 30 s. If the
// message is lost, or this process stands still, others wait for the rest of the RetainTTL. TryLock
// of another process asks up to six times within 31 ms and its own round trips, in place of one.
// Its *HeldError says that the holder Retains if it got no answer in that time. WithoutRecall has
// it ask once.
//
// Release returns before anything is known of the writes that the caller has under way elsewhere,
// as always; but no request hides them for a moment. A storage that checks tokens refuses a write
// that comes late.
//
// The break of an unused name is no loss of anybody. Detach of a lease ends the retaining.
func WithRetain(idle time.Duration) Option {
	return func(s *settings) { s.Retain, s.given = idle, s.given|optRetain }
}

// WithoutRecall makes TryLock and TryDo answer after one round trip, also if the holder may keep
// the lock unused (WithRetain). The holder is asked to give it back all the same.
func WithoutRecall() Option {
	return func(s *settings) { s.NoRecall, s.given = true, s.given|optNoRecall }
}

// WithWanted closes the channel of Lease.Wanted as soon as anybody waits for the lock, in this
// process or in another one, so that a holder whose work can wait lets go. A TryLock of another
// process that is refused counts as well. The client is subscribed for as long as it has such a
// lease. A quorum refuses it.
func WithWanted() Option {
	return func(s *settings) { s.Wanted, s.given = true, s.given|optWanted }
}

// notWithRetain has the options that a retained lock cannot have, and why.
var notWithRetain = []struct {
	option optionSet
	why    string
}{
	{optFixed, "not with WithoutRenewal, as it is renewed while it is retained"},
	{optMaxHold, "not with WithMaxHold, as several leases have one hold"},
	{optMinHold, "not with WithMinHold, as several leases have one hold"},
	{optPolling, "not with WithPolling, which asks the server for each lease"},
	{optOwner, "not with WithOwner, as holders of one owner do not exclude each other"},
	{optStrict, "not with WithStrictOrder, as each call stands in the server's queue"},
	{optDeadlockCheck, "not with WithDeadlockCheck, as nobody uses what is retained"},
	{optUnder, "not with WithUnder, as each call stands in the server's queue"},
}

// newSettings applies options for a kind of lock, and checks them and the name.
func (c *Client) newSettings(kind, name string, options []Option) (settings, error) {
	s := c.applyOptions(kind, options)
	if bad := s.invalidOptions(kind, name, c.config.MaxTTL); bad != nil {
		return s, bad.err(handleText(kind, name))
	}
	return s.reconcile(), nil
}

// applyOptions returns the defaults for a kind of lock, changed by options.
func (c *Client) applyOptions(kind string, options []Option) settings {
	s := settings{label: c.config.Label, noQueue: !c.engine.Queues()}
	s.TTL, s.RetainTTL = c.config.TTL, c.config.RetainTTL
	if kind != "Election" && kind != "Latch" { // they wait as long as it takes, unless an option says otherwise
		s.Wait = c.config.Wait
	}
	for _, option := range options {
		if option != nil {
			option(&s)
		}
	}
	return s
}

// reconcile makes checked settings agree with each other.
func (s settings) reconcile() settings {
	if s.isGiven(optMaxHold) && s.MaxHold < s.TTL {
		s.TTL = s.MaxHold
	}
	s.TTL = s.TTL.Truncate(time.Millisecond)
	return s
}

// invalidOptions returns all that is wrong with a name and its options.
//
//nolint:gocyclo // one line for each rule of an option
func (s *settings) invalidOptions(kind, name string, longest time.Duration) (bad problems) {
	if name == "" || len(name) > limits.MaxText {
		bad.add("name", shorten(name), "from 1 to 1024 bytes")
	}
	if s.TTL < limits.MinTTL || s.TTL > longest {
		bad.add("WithTTL", s.TTL, fmt.Sprintf("from 100ms to Config.MaxTTL, %v", longest))
	}
	if s.isGiven(optMaxHold) && s.MaxHold < limits.MinTTL {
		bad.add("WithMaxHold", s.MaxHold, "at least 100ms")
	}
	if s.isGiven(optMinHold) && (s.MinHold <= 0 || s.MinHold > longest) {
		bad.add("WithMinHold", s.MinHold, fmt.Sprintf("above 0, at most Config.MaxTTL, %v", longest))
	}
	if s.isGiven(optMinHold) && s.isGiven(optMaxHold) && s.MaxHold >= limits.MinTTL && s.MinHold > s.MaxHold {
		bad.add("WithMinHold", s.MinHold, fmt.Sprintf("at most the max hold, %v", s.MaxHold))
	}
	if s.isGiven(optPolling) && s.Interval < time.Millisecond {
		bad.add("WithPolling interval", s.Interval, "at least 1ms")
	}
	if s.isGiven(optPolling) && s.Attempts < 0 {
		bad.add("WithPolling attempts", s.Attempts, "at least 0")
	}
	if s.isGiven(optDeadlockCheck) {
		bad.check(!s.isGiven(optPolling), "WithDeadlockCheck", "given",
			"not with WithPolling, which has no place in the queue")
		bad.check(!s.noQueue, "WithDeadlockCheck", "given", "not with NewQuorum, as a quorum has no queue")
	}
	if s.Under != nil && len(*s.Under) > engine.MaxUnder {
		bad.add("WithUnder", fmt.Sprintf("%d names", len(*s.Under)), fmt.Sprintf("at most %d", engine.MaxUnder))
	}
	if s.isGiven(optRetain) {
		retain := any(s.Retain) // one allocation, not one a check
		bad.check(s.Retain >= time.Millisecond && s.Retain <= time.Hour, "WithRetain", retain, "from 1ms to 1h")
		for _, no := range notWithRetain {
			bad.check(!s.isGiven(no.option), "WithRetain", retain, no.why)
		}
		bad.check(!s.noQueue, "WithRetain", retain, "not with NewQuorum, as no master can recall it")
	}
	bad.check(!s.isGiven(optWanted) || !s.noQueue, "WithWanted", "given",
		"not with NewQuorum, as a quorum has no queue")
	if s.isGiven(optOwner) && (s.owner == "" || len(s.owner) > limits.MaxText) {
		bad.add("WithOwner", shorten(s.owner), "from 1 to 1024 bytes")
	}
	if s.isGiven(optWait) && s.Wait <= 0 {
		bad.add("WithWait", s.Wait, "above 0")
	}
	if len(s.label) > limits.MaxText {
		bad.add("WithLabel", shorten(s.label), "at most 1024 bytes")
	}
	return append(bad, s.meaninglessOptions(kind)...)
}

// meaninglessOptions returns the options that have no meaning for a type.
func (s *settings) meaninglessOptions(kind string) (bad problems) {
	no := meaningless[kind] & s.given
	if no == 0 {
		return nil
	}
	for i, option := range []struct {
		name  string
		value any
	}{{"WithTTL", s.TTL}, {"WithoutRenewal", "given"}, {"WithMaxHold", s.MaxHold}, {"WithMinHold", s.MinHold},
		{"WithPolling", s.Interval},
		{"WithOwner", shorten(s.owner)}, {"WithStrictOrder", "given"}, {"WithLabel", shorten(s.label)},
		{"WithWait", s.Wait},
		{"WithDeadlockCheck", "given"}, {"WithUnder", "given"}, {"WithRetain", s.Retain},
		{"WithoutRecall", "given"}, {"WithWanted", "given"}} {
		if no&(1<<i) != 0 {
			bad.add(option.name, option.value, "not with "+kind)
		}
	}
	return bad
}

// shorten keeps errors readable.
func shorten(s string) string {
	if len(s) <= 64 {
		return s
	}
	return fmt.Sprintf("%s... (%d bytes)", s[:40], len(s))
}
