package history

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// An Event says what a Record tells of.
type Event string

// The events. Call and Return belong to an operation, Trust and Lost to a hold, the others to a
// process.
const (
	Call   Event = "call"
	Return Event = "return"
	Trust  Event = "trust" // the library said that the hold is good
	Lost   Event = "lost"  // the library said that it is not
	Close  Event = "close" // of the client: its leases are given back
	Kill   Event = "kill"
	Stop   Event = "stop"
	Cont   Event = "cont"
	Mute   Event = "mute" // the network of a process fell silent; Limit says for how long
	// a process stood still by itself, as on a busy machine, from At on; Limit says for how long
	Stall  Event = "stall"
	Detach Event = "detach" // the lease left its process, for another to attach
)

// A Kind is an operation.
type Kind string

// The operations. Lock and TryLock make holds: of a mutex, of a semaphore or a group, to
// read and to write, or of an election; Type, Shares, Weight and Tokens say which. Write and Read
// are on the resource that checks tokens.
const (
	Lock      Kind = "lock"
	TryLock   Kind = "try"
	Release   Kind = "release"
	Downgrade Kind = "downgrade"
	Confirm   Kind = "check" // Lease.Check
	Do        Kind = "do"    // around a TryLock that enters it, which tells its token
	Leader    Kind = "leader"
	Set       Kind = "set" // and the next three: of a latch
	CountDown Kind = "count down"
	Count     Kind = "count"
	Wait      Kind = "wait"
	Write     Kind = "write"
	Read      Kind = "read"
)

// Holds reports whether the operation makes a hold, if it succeeds.
func (k Kind) Holds() bool { return k == Lock || k == TryLock }

// A Type is what a name is. It does not change.
type Type string

// The types. A group's names are mutexes.
const (
	Mutex     Type = "mutex"
	ReadWrite Type = "rw"
	Semaphore Type = "semaphore"
	Election  Type = "election"
	Latch     Type = "latch"
	Group     Type = "group"
)

// A Result is how an operation ended.
type Result string

// The results. A write that the resource took because its token was good, while the value had
// changed since the writer read it, is LostUpdate.
const (
	OK          Result = "ok"
	Held        Result = "held"
	TimedOut    Result = "timeout"
	Canceled    Result = "canceled"
	LeaseLost   Result = "lost"
	NotHeld     Result = "not held"
	Uncertain   Result = "uncertain"
	Unavailable Result = "unavailable"
	Refused     Result = "refused" // by the resource; or an *ArgumentError that was to be expected
	NoLeader    Result = "no leader"
	Changed     Result = "changed" // of Read: not what the same hold had read before
	LostUpdate  Result = "lost update"
	Overdue     Result = "overdue" // of Trust: Err was nil although Until was over
	Failed      Result = "failed"  // an error, or of Lost a cause, that the workload did not expect; Text tells
)

// A Record is a line of a history. Times are readings of Now.
type Record struct {
	At     int64  `json:"at"`
	Proc   string `json:"p"`
	Event  Event  `json:"ev"`
	Op     int64  `json:"op,omitempty"` // within Proc, from 1; joins Call and Return
	Kind   Kind   `json:"kind,omitempty"`
	Type   Type   `json:"type,omitempty"`
	Name   string `json:"name,omitempty"`   // of a group: none, see Tokens
	Hold   string `json:"hold,omitempty"`   // ID of the hold meant; for a lock, the one it makes if it wins
	Root   string `json:"root,omitempty"`   // ID of the hold whose context was given: reentry
	Owner  string `json:"owner,omitempty"`  // of WithOwner
	Shares bool   `json:"shares,omitempty"` // a reader
	// it stands in the server's queue itself, not behind others of its process
	Queues bool `json:"queues,omitempty"`
	Polls  bool `json:"polls,omitempty"`
	// permits taken; what a latch counts
	Weight int64            `json:"weight,omitempty"`
	Size   int64            `json:"size,omitempty"` // permits that the handle names
	Min    int64            `json:"min,omitempty"`  // min hold
	TTL    int64            `json:"ttl,omitempty"`
	Token  int64            `json:"token,omitempty"`
	Names  []string         `json:"names,omitempty"`  // that a group asks for
	Tokens map[string]int64 `json:"tokens,omitempty"` // of a group's names
	Until  int64            `json:"until,omitempty"`  // trust end
	Limit  int64            `json:"limit,omitempty"`  // of a call: when it should return, 0: not bounded
	Result Result           `json:"res,omitempty"`
	Text   string           `json:"text,omitempty"`
}

func (r Record) names() []string {
	if r.Name == "" {
		return r.Names
	}
	return []string{r.Name}
}

// Format writes the record for people, with times in milliseconds since origin.
func (r Record) Format(origin int64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%12s  %-6s %-6s", millis(r.At-origin), r.Proc, r.Event)
	for _, f := range []struct {
		told  bool
		text  string
		value any
	}{
		{r.Type != "", " %v", r.Type}, {r.Kind != "", " %v", r.Kind}, {r.Name != "", " name=%v", r.Name},
		{r.Owner != "", " owner=%v", r.Owner}, {r.Hold != "", " hold=%v", r.Hold},
		{r.Root != "", " under=%v", r.Root}, {r.Result != "", " %v", r.Result}, {r.Text != "", " %v", r.Text},
		{r.Shares, " %v", "shares"}, {r.Weight != 0, " weight=%v", r.Weight}, {r.Size != 0, " size=%v", r.Size},
		{len(r.Tokens) > 0, " tokens=%v", r.Tokens}, {r.Token != 0, " token=%v", r.Token},
		{r.Until != 0, " until=%v", millis(r.Until - origin)},
	} {
		if f.told {
			fmt.Fprintf(&b, f.text, f.value)
		}
	}
	return b.String()
}

func millis(ns int64) string {
	return fmt.Sprintf("%.3fms", float64(ns)/float64(time.Millisecond))
}

// suffix ends the name of every file of a history.
const suffix = ".history"

// A Recorder appends records to the file of one process. It is safe for concurrent use.
type Recorder struct {
	proc string
	file *os.File
	ops  atomic.Int64
	err  atomic.Pointer[error]
}

// Create makes the file of process proc in dir. A process that is started again needs a new name,
// as its operations count from 1 again.
func Create(dir, proc string) (*Recorder, error) {
	const flags = os.O_CREATE | os.O_EXCL | os.O_WRONLY | os.O_APPEND
	file, err := os.OpenFile(filepath.Join(dir, proc+suffix), flags, 0o600)
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	return &Recorder{proc: proc, file: file}, nil
}

// NextOp gives the number of a new operation.
func (r *Recorder) NextOp() int64 { return r.ops.Add(1) }

// HoldID returns the ID of the hold that operation op makes.
func (r *Recorder) HoldID(op int64) string { return fmt.Sprintf("%s#%d", r.proc, op) }

// Put writes rec down; At and Proc are filled in where they are empty. When it returns, the kernel
// has the record: a buffer of our own would die with the process. A failure is kept for Close, as a
// workload has nothing better to do.
func (r *Recorder) Put(rec Record) {
	if rec.At == 0 {
		rec.At = Now()
	}
	if rec.Proc == "" {
		rec.Proc = r.proc
	}
	line, err := json.Marshal(rec)
	if err == nil {
		_, err = r.file.Write(append(line, '\n')) // one write: lines of several goroutines do not mix
	}
	if err != nil {
		r.err.CompareAndSwap(nil, &err)
	}
}

// Close closes the file and tells the first failure of all.
func (r *Recorder) Close() error {
	err := r.file.Close()
	if first := r.err.Load(); first != nil {
		err = errors.Join(*first, err)
	}
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	return nil
}

// Load reads all files of dir, in the order of time. A last line without its end is what kill -9
// made of it, and is left out; anything else that is no record is an error.
func Load(dir string) ([]Record, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	var records []Record
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("history: %w", err)
		}
		for n := 1; ; n++ {
			line, rest, whole := bytes.Cut(data, []byte{'\n'})
			if !whole {
				break
			}
			var rec Record
			if err := json.Unmarshal(line, &rec); err != nil {
				return nil, fmt.Errorf("history: %s, line %d: %w", file, n, err)
			}
			records = append(records, rec)
			data = rest
		}
	}
	// Stable: a process wrote its records of one instant in the order in which they happened.
	slices.SortStableFunc(records, func(a, b Record) int { return cmp.Compare(a.At, b.At) })
	return records, nil
}

// Judge loads the history in dir, and checks it.
func Judge(dir string, idle time.Duration) (*History, []Violation, error) {
	records, err := Load(dir)
	if err != nil {
		return nil, nil, err
	}
	h, err := Assemble(records)
	if err != nil {
		return nil, nil, err
	}
	return h, Check(h, idle), nil
}
