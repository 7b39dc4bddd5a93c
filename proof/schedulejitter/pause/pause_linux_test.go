package pause

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

func TestHowLong(t *testing.T) {
	s := newSource(5)
	held := map[uint64]int{} // visits that were, by place
	for range always {
		for place := range uint64(800) {
			s.spent.Store(0) // as after a long time
			d := s.delay(place)
			if d > 0 {
				held[place]++
			}
			if d > 256*time.Millisecond {
				t.Fatalf("%v", d)
			}
		}
	}
	slow := 0
	for _, n := range held {
		if n >= always/4 {
			slow++
		}
	}
	if slow < 50 || slow > 200 {
		t.Errorf("%d of 800 places are slow, and one in %d should be", slow, one)
	}
}

// A process that was held up for half of the time is held up no more.
func TestHowMuch(t *testing.T) {
	s := newSource(5)
	began := now()
	for visit := range uint64(100_000) {
		s.delay(visit % 1000)
	}
	if spent, most := s.spent.Load(), 2_000_000+(now()-began)/2+256_000; spent > most {
		t.Errorf("%d us, and %d are allowed", spent, most)
	}
}

// The clock of a bubble stands while a goroutine is held up.
func TestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, real := time.Now(), now()
		wait(20 * time.Millisecond)
		if d := time.Since(began); d != 0 {
			t.Errorf("the clock went on by %v", d)
		}
		if us := now() - real; us < 20_000 {
			t.Errorf("it took %d us", us)
		}
	})
}
