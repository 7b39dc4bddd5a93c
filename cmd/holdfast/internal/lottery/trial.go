package lottery

import "time"

// A Trial is what happens to the holder of a round before it draws.
type Trial int

// What happens to a holder.
const (
	None     Trial = iota
	Stop           // it is stopped past its TTL, and continued
	Overstay       // it does not end by itself, and has a max hold
	Kill           // it is killed with -9
)

// String is how the trial is spoken of.
func (t Trial) String() string {
	return [...]string{"nothing", "the stop", "it came", "the kill"}[t]
}

// trial is what happens in a round. Order is shown before, between and after; the kill comes last, as it takes a worker away.
func (h *Hall) trial(round int) Trial {
	switch n := h.Rounds; {
	case h.Without:
		return None // nobody would notice
	case round == max((3*n+3)/4, min(n, 3)) && n >= 3, round == n && n < 3:
		return Kill
	case round == (n+3)/4 && n >= 2 && canStop:
		return Stop
	case round == (n+1)/2 && n >= 3:
		return Overstay
	}
	return None
}

// An Incident is how a trial went.
type Incident struct {
	Trial   Trial
	Took    time.Duration // until the next one held the lock; 0: nobody did
	Allowed time.Duration // the most that it may be
	Lost    bool          // the one it happened to saw that it had lost the lease
	Refused bool          // its late draw was refused by its token
}

// maxHold is that of the round in which somebody overstays.
func (h *Hall) maxHold() time.Duration { return h.TTL + h.TTL/4 }

// allowed is the longest that a trial may keep the others out.
func (h *Hall) allowed(t Trial) time.Duration {
	longest := h.TTL
	if t == Overstay {
		longest = h.maxHold()
	}
	if h.Slack > 0 {
		return longest + h.Slack
	}
	return longest + slack
}
