package engine

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// An alarm is an entry of a schedule.
type alarm struct {
	name string
	at   time.Time
	when dueTime
}

func (a *alarm) dueAt() time.Time { return a.at }

func (a *alarm) entry() *dueTime { return &a.when }

// A bell is a schedule that notes which alarms rang, and after how long.
type bell struct {
	mu       sync.Mutex
	schedule schedule[*alarm]
	began    time.Time
	fired    int // how often the timer fired
	rang     []string
}

func newBell() *bell {
	b := &bell{began: time.Now()}
	b.schedule.whenIsUp = b.ring
	return b
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fired++
	for len(b.schedule.entries) > 0 && !b.schedule.due().After(time.Now()) {
		first := b.schedule.entries[0]
		b.schedule.remove(first)
		b.rang = append(b.rang, first.name+" "+time.Since(b.began).String())
	}
	b.schedule.rearm()
}

// after makes an alarm ring so long after the beginning, also one that would ring at another time.
func (b *bell) after(a *alarm, d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a.at = b.began.Add(d)
	b.schedule.add(a)
}

func (b *bell) remove(a *alarm) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.schedule.remove(a)
}

func TestScheduleRingsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBell()
		early, middle := &alarm{name: "early"}, &alarm{name: "middle"}
		late, never := &alarm{name: "late"}, &alarm{name: "never"}
		b.after(late, time.Second) // at first
		b.after(never, 2*time.Second)
		b.after(middle, 3*time.Second)
		b.after(early, 4*time.Second) // at first
		b.after(late, 5*time.Second)
		b.after(early, 1500*time.Millisecond)
		b.remove(never)
		b.remove(never)
		<-time.After(time.Minute)
		synctest.Wait()
		if want := []string{"early 1.5s", "middle 3s", "late 5s"}; !slices.Equal(b.rang, want) {
			t.Errorf("rang %q, want %q", b.rang, want)
		}
		if !b.schedule.firesAt.IsZero() {
			t.Errorf("the timer is set for %v, and there is no entry", b.schedule.firesAt)
		}
	})
}

// Entries that are soon over do not set the timer each, and none rings.
func TestScheduleOfShortEntriesFiresRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBell()
		for range 1000 {
			short := &alarm{name: "short"}
			b.after(short, time.Since(b.began)+time.Second)
			<-time.After(10 * time.Millisecond)
			b.remove(short)
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if len(b.rang) > 0 || b.fired > 11 { // 10 s, and the last one
			t.Errorf("the timer fired %d times in 10 s, and %q rang", b.fired, b.rang)
		}
	})
}
