package holdfast

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/holdfast-go/holdfast/internal/limits"
	"github.com/holdfast-go/holdfast/internal/logging"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A Config says how a client works. Zero fields, and a nil *Config, mean the defaults. New copies
// it. Clients exclude each other only on the same servers and database, under the same Prefix.
type Config struct {
	// Class makes the Class of an Event of the name of a lock, for metrics, such as "order" for all
	// of "order:42". Many goroutines call it at once, also with names that other clients chose, of
	// any bytes. In a class, U+FFFD replaces what is no UTF-8; after a panic it is empty. The first
	// 1,000 classes are told apart; later ones are "other". Defaults to none.
	Class func(name string) string

	// History is about how many entries the servers keep of what happens to the names of each
	// class, for Client.History: grants, ends, and waits in vain that were longer than SlowWait, or
	// than 1 s without it. No lock depends on it: entries are written in the background, and
	// dropped if the server does not take them. At most 1,000,000; defaults to 0, which is none.
	History int

	Label string // names this client to other clients; at most 1 KiB, any bytes; defaults to "program@host/pid"

	// Logger receives failures in the background, of renewals and cleanups. A panic of its handler
	// is caught. One that blocks delays no call but Close, within ReleaseTimeout. While 1,000 lines
	// wait, later ones are dropped and counted. Defaults to discarding.
	Logger *slog.Logger

	MaxTTL   time.Duration // the largest TTL of this client's locks, from 100 ms to 24 h; defaults to 5 minutes
	Observer Observer      // receives an Event for each thing that happens to a lock; defaults to none
	// NoEvict has the servers keep fencing tokens, holds and latches from eviction (BLESS), so that
	// maxmemory-policy may evict other keys. A place in a queue may still be evicted: its caller
	// joins again. All clients of a name should have it: what is handed over by a client without it
	// is kept from the first renewal on. It needs Redis 8.12, and the permission +bless|set;
	// elsewhere calls and Ready return a *StoreError of StoreUnsupported or StoreDenied. NewQuorum
	// refuses it.
	NoEvict bool

	Prefix         string        // begins all keys and channels; at most 1 KiB, without braces; defaults to "holdfast"
	ReleaseTimeout time.Duration // bounds Release, and Close for all leases; at least 1 ms; defaults to 5 s
	Replicas       Replicas      // what replicas must confirm before it is trusted; defaults to none

	// Remote has this client answer Client.Stacks of others with the functions and lines of the
	// call that took a lease. It costs the stack of each call, and a subscription while it has
	// leases: PREFIX-remote:ask, which no pattern PREFIX:* permits. Defaults to none of that.
	Remote bool

	// RetainMax is how many names at most are retained at one moment (WithRetain), from 1 to
	// 100,000; the one that was used least lately is given back. Defaults to 1,000.
	RetainMax int

	// RetainTTL is the TTL of a lock that may be retained, if it is less than its own, from 100 ms
	// to MaxTTL. It is how long others wait if the process crashes. Defaults to 3 s, or to MaxTTL
	// if that is less.
	RetainTTL time.Duration

	// SlowHold and SlowWait are the times, at least 1 ms, after which a lease, or the wait of a
	// call, is reported: to the Logger as a warning and to the Observer, with the stack of the
	// call. The report is repeated at doubling times, and the Logger is told of the end. Polling
	// that waits names no holder. Elections are left out. They default to none.
	SlowHold, SlowWait time.Duration

	// TTL is how long a lock outlives its holder; from 100 ms to MaxTTL. A lease lives through an
	// outage of d if it is 1.6 d + 2 s or more. Defaults to 15 s, or to MaxTTL if that is less.
	TTL time.Duration

	// TrustNewNodes counts masters of a quorum although their memory began less than MaxTTL ago,
	// for all clients from now on. It is for the first start of a quorum and for tests: while it is
	// set, a master that restarts without its data lets two holders in. New ignores it.
	TrustNewNodes bool

	// Wait bounds the waiting of each call on a Mutex, RWMutex, Semaphore or Group, as WithWait
	// does. It does not bound campaigns and the waiting for a Latch. Defaults to none.
	Wait time.Duration
}

// Replicas says what a fail-over must not lose. Without it, a fail-over may let a second holder in.
// A grant that is not confirmed in time is taken back: the call returns an error, or asks again if
// it waits. A renewal that is not confirmed does not extend trust. Each grant and renewal costs a
// WAIT on its connection, and a hand-over costs one more round trip. Replicas is safe if every
// replica that may be promoted is among those that confirmed, or if the replica with the most data
// is promoted.
type Replicas struct {
	Count int // how many replicas must confirm, from 0 to 16; 0 means none

	// Timeout bounds the waiting for the replicas, from 1 ms to 1 s, in whole milliseconds. It is
	// at most half of the time of a request (a sixth of the TTL, at most 1 s). Defaults to 200 ms.
	Timeout time.Duration
}

const (
	defaultTTL            = 15 * time.Second
	defaultReleaseTimeout = 5 * time.Second
	defaultRetainTTL      = 3 * time.Second
)

// withDefaults returns the configuration with its defaults, or all that is wrong with it.
func (c *Config) withDefaults() (Config, error) {
	var f Config
	if c != nil {
		f = *c
	}
	f.setDefaults()
	var bad problems
	bad.check(f.MaxTTL >= limits.MinTTL && f.MaxTTL <= limits.MaxTTL, "Config.MaxTTL", f.MaxTTL, "from 100ms to 24h")
	bad.check(f.TTL >= limits.MinTTL && f.TTL <= f.MaxTTL, "Config.TTL", f.TTL,
		fmt.Sprintf("from 100ms to MaxTTL, %v", f.MaxTTL))
	bad.check(f.ReleaseTimeout >= time.Millisecond, "Config.ReleaseTimeout", f.ReleaseTimeout, "at least 1ms")
	bad.check(len(f.Prefix) <= limits.MaxText && !strings.ContainsAny(f.Prefix, "{}"), "Config.Prefix", f.Prefix,
		"at most 1024 bytes, without { and }")
	bad.check(f.Replicas.Count >= 0 && f.Replicas.Count <= 16, "Config.Replicas.Count", f.Replicas.Count,
		"from 0 to 16")
	bad.check(f.Replicas.Timeout >= time.Millisecond && f.Replicas.Timeout <= time.Second, "Config.Replicas.Timeout",
		f.Replicas.Timeout, "from 1ms to 1s")
	bad.check(f.History >= 0 && f.History <= 1_000_000, "Config.History", f.History,
		"from 0, which means none, to 1000000")
	bad.check(f.RetainMax >= 1 && f.RetainMax <= 100_000, "Config.RetainMax", f.RetainMax, "from 1 to 100000")
	bad.check(f.RetainTTL >= limits.MinTTL && f.RetainTTL <= f.MaxTTL, "Config.RetainTTL", f.RetainTTL,
		fmt.Sprintf("from 100ms to MaxTTL, %v", f.MaxTTL))
	bad.check(isSlowTime(f.SlowHold), "Config.SlowHold", f.SlowHold, "at least 1ms, or 0, which means none")
	bad.check(isSlowTime(f.SlowWait), "Config.SlowWait", f.SlowWait, "at least 1ms, or 0, which means none")
	bad.check(f.Wait >= 0, "Config.Wait", f.Wait, "at least 0, which means none")
	bad.check(len(f.Label) <= limits.MaxText, "Config.Label", f.Label, "at most 1024 bytes")
	return f, bad.err("New")
}

// setDefaults sets the fields that are zero to their defaults.
func (c *Config) setDefaults() {
	if c.MaxTTL == 0 {
		c.MaxTTL = 5 * time.Minute
	}
	if c.TTL == 0 {
		c.TTL = min(defaultTTL, c.MaxTTL)
	}
	if c.RetainMax == 0 {
		c.RetainMax = 1000
	}
	if c.RetainTTL == 0 {
		c.RetainTTL = min(defaultRetainTTL, c.MaxTTL)
	}
	if c.ReleaseTimeout == 0 {
		c.ReleaseTimeout = defaultReleaseTimeout
	}
	if c.Prefix == "" {
		c.Prefix = "holdfast"
	}
	if c.Replicas.Timeout == 0 {
		c.Replicas.Timeout = 200 * time.Millisecond
	}
	if c.Label == "" {
		c.Label = defaultLabel()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Logger = logging.Background(c.Logger)
}

func isSlowTime(d time.Duration) bool { return d == 0 || d >= time.Millisecond }

// hostname returns the name of this machine, in at most so many bytes.
func hostname(maxBytes int) string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return host[:min(len(host), maxBytes)]
}

// processID names a client in its channel: "host/pid/" and random bits. A reader of a channel can
// tell from it whose channel it is. In the host's name, a hyphen replaces every character except
// letters, digits, dots, hyphens and underscores.
func processID() string {
	host := strings.Map(func(c rune) rune {
		if c < 128 && (unicode.IsLetter(c) || unicode.IsDigit(c)) || strings.ContainsRune("._-", c) {
			return c
		}
		return '-'
	}, hostname(64))
	return fmt.Sprintf("%s/%d/%s", host, os.Getpid(), protocol.NewID())
}

func defaultLabel() string {
	program := "unknown"
	if len(os.Args) > 0 {
		program = filepath.Base(os.Args[0])
	}
	return fmt.Sprintf("%.200s@%s/%d", program, hostname(200), os.Getpid())
}
