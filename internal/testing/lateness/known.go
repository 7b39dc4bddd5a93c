package lateness

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// known returns mixes in which a waiter that was told of nothing entered when it asked by itself:
// up to six seconds late. All is over before it does so, four seconds after it came. The last
// caller of each is the one to look at.
func known() []Mix {
	const long, s = time.Minute, time.Second
	mixes := []Mix{
		{Name: "readers that a min hold kept out enter together", Kind: protocol.ReadWrite, Callers: []Caller{
			{TTL: long, MinHold: 2 * s, For: s},
			{TTL: long, Shared: true, For: s},
			{TTL: long, Shared: true, For: s},
		}},
		{Name: "permits that a min hold kept go to several", Kind: protocol.Semaphore, Permits: 2, Callers: []Caller{
			{TTL: long, Weight: 2, MinHold: 2 * s, For: s},
			{TTL: long, Weight: 1, For: s},
			{TTL: long, Weight: 1, For: s},
		}},
		{Name: "a lease that was handed over runs out", Kind: protocol.Mutex, Callers: []Caller{
			{TTL: long, For: s},
			{TTL: s, RunsOut: true},
			{TTL: long, For: s},
		}},
		{Name: "a reader's lease that was handed over runs out", Kind: protocol.ReadWrite, Callers: []Caller{
			{TTL: long, For: s},
			{TTL: s, Shared: true, RunsOut: true},
			{TTL: long, For: s},
		}},
		{Name: "a lease for which its caller asked after a min hold runs out", Kind: protocol.Mutex, Callers: []Caller{
			{TTL: long, MinHold: 2 * s, For: s},
			{TTL: s, RunsOut: true},
			{TTL: long, For: s},
		}},
		{Name: "a lease runs out before a min hold beside it", Kind: protocol.Semaphore, Permits: 3, Callers: []Caller{
			{TTL: long, Weight: 1, MinHold: 5 * s, For: s / 2},
			{TTL: long, Weight: 1, For: s},
			{TTL: long, Weight: 1, For: 2 * s},
			{TTL: 2 * s, Weight: 1, RunsOut: true},
			{TTL: long, Weight: 1, For: long},
			{TTL: long, Weight: 1, For: s},
		}},
		{Name: "a lease runs out, and the first in the queue came there since", Kind: protocol.Semaphore, Permits: 2,
			Callers: []Caller{
				{TTL: long, Weight: 1, For: s},
				{TTL: long, Weight: 1, For: 2 * s},
				{TTL: 2 * s, Weight: 1, RunsOut: true},
				{TTL: long, Weight: 1, For: long},
				{TTL: long, Weight: 1, For: s},
			}},
		{Name: "a lease runs out, and the first in the queue gave up", Kind: protocol.Semaphore, Permits: 2,
			Callers: []Caller{
				{TTL: long, Weight: 1, For: s},
				{TTL: long, Weight: 1, For: long},
				{TTL: 2 * s, Weight: 1, RunsOut: true},
				{TTL: long, Weight: 1, Wait: 2 * s},
				{TTL: long, Weight: 1, For: s},
			}},
		{Name: "a lease that was asked for runs out, and the first in the queue came there since",
			Kind: protocol.Semaphore, Permits: 2, Callers: []Caller{
				{TTL: long, Weight: 2, MinHold: s, For: s / 2},
				{TTL: 2 * s, Weight: 1, RunsOut: true},
				{TTL: long, Weight: 1, For: s / 2},
				{TTL: long, Weight: 1, For: long},
				{TTL: long, Weight: 1, For: s},
			}},
		{Name: "a lease that its owner took beside another runs out", Kind: protocol.Mutex, Callers: []Caller{
			{TTL: long, Owner: "o", For: s},
			{TTL: long, For: s},
			{TTL: 2 * s, Owner: "o", RunsOut: true},
		}},
	}
	for i := range mixes {
		for j := range mixes[i].Callers {
			c := &mixes[i].Callers[j]
			c.Process, c.At, c.Shared = j, time.Duration(j)*10*time.Millisecond, c.Shared ||
				mixes[i].Kind == protocol.Semaphore
		}
	}
	return mixes
}
