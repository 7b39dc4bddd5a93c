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
	"sync/atomic"
	"time"
)

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
