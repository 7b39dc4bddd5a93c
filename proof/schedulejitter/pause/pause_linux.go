package pause

import (
	"errors"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	one    = 8  // place in so many is slow
	always = 12 // visits of a slow place, of which every third is held up; later few are
	server = 16 // requests, of which one is late, and one answer
)

// A source is what all places of a process have in common.
type source struct {
	seed  uint64
	began int64 // us
	draws atomic.Uint64
	spent atomic.Int64 // us that goroutines were held up
	seen  sync.Map     // place -> *atomic.Uint32
}

var common = sync.OnceValue(func() *source {
	seed, err := strconv.ParseUint(os.Getenv(Seed), 10, 64)
	if err != nil {
		return nil
	}
	return newSource(seed)
})

func newSource(seed uint64) *source {
	s := &source{seed: mix(seed + 1), began: now()}
	s.draws.Store(mix(s.seed + uint64(os.Getpid())))
	return s
}

// Here holds the caller up at a place, or not. It takes real time, also in a bubble of synctest,
// whose clock stands meanwhile.
func Here(place uint64) {
	if s := common(); s != nil {
		wait(s.delay(place))
	}
}

// Server holds the caller up as a server does, or the way to it: the request or the answer is late.
func Server() {
	if s := common(); s != nil {
		wait(s.lag())
	}
}

func wait(d time.Duration) {
	if d == 0 {
		return
	}
	left := syscall.NsecToTimespec(int64(d))
	for errors.Is(syscall.Nanosleep(&left, &left), syscall.EINTR) { // the runtime's own signals
	}
}

func (s *source) delay(place uint64) time.Duration {
	n, _ := s.seen.LoadOrStore(place, new(atomic.Uint32))
	visit, r := n.(*atomic.Uint32).Add(1), s.draw()
	switch {
	case mix(place^s.seed)%one == 0 && (visit <= always && r%3 == 0 || r%32 == 0):
		return s.spend(long(r))
	case r%512 == 0:
		return s.spend(500 + r>>16%30e3)
	}
	return 0
}

func (s *source) lag() time.Duration {
	if r := s.draw(); r%server == 0 {
		return s.spend(long(r))
	}
	return 0
}

func (s *source) draw() uint64 { return mix(s.draws.Add(0x9e3779b97f4a7c15)) }

// long is 1 to 256 ms in us, half of the time less than 20.
func long(r uint64) uint64 { return (1e3 + r>>8%1e3) << (r >> 40 % 8) }

// spend is for how many us a goroutine is held up; 0 when all have been held up for too long.
func (s *source) spend(us uint64) time.Duration {
	if s.spent.Load() > 2e6+(now()-s.began)/2 {
		return 0
	}
	s.spent.Add(int64(us))
	return time.Duration(us) * time.Microsecond
}

// now is the time in us, which a bubble of synctest does not change.
func now() int64 {
	var t syscall.Timeval
	_ = syscall.Gettimeofday(&t)
	return t.Nano() / 1e3
}

// mix scatters the bits of a number: the end of MurmurHash3, by Austin Appleby.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
