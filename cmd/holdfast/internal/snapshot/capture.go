package snapshot

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// The format of a capture. The first line is a header. Each other line is a snapshot.
const (
	captureKind    = "holdfast top"
	captureVersion = 2

	mostBytes = 256 << 20 // of a file
	mostLine  = 32 << 20  // of a snapshot
	mostHolds = 10        // of a lock in a capture: the totals are exact
	mostQueue = 20
)

// ErrFull means that a capture is as large as it may be.
var ErrFull = fmt.Errorf("the capture has %d MiB, and gets no larger", mostBytes>>20)

type header struct {
	Capture string    `json:"capture"`
	Version int       `json:"version"`
	Server  string    `json:"server"` // without password
	At      time.Time `json:"at"`
}

type storedRecord struct {
	At    time.Time       `json:"at"`
	Took  float64         `json:"took_seconds"`
	Total int             `json:"total"`
	Locks []lockinfo.Info `json:"locks"`
	Error string          `json:"error,omitempty"`
}

// A Writer writes snapshots to a file.
type Writer struct {
	file *os.File
	size int
}

// Create makes a new file, which only its owner can read: names and labels may be secret. It
// refuses a file that exists.
func Create(path, server string) (*Writer, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("%s exists already: a capture is a new file", show.Text(path))
	}
	if err != nil {
		return nil, err
	}
	w := &Writer{file: file}
	head, err := show.JSON(header{captureKind, captureVersion, server, time.Now().UTC()}, "")
	if err == nil {
		err = w.write(head)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return w, nil
}

// Add writes a snapshot as one line, in one write. The error is ErrFull if the file would become
// too large; then nothing is written.
func (w *Writer) Add(s Snapshot) error {
	out := storedRecord{At: s.At.UTC(), Took: s.Took.Seconds(), Total: s.Total, Locks: []lockinfo.Info{}}
	if s.Err != nil {
		out.Error = s.Err.Error()
	}
	for _, info := range s.Locks {
		out.Locks = append(out.Locks, info.Cut(mostHolds, mostQueue))
	}
	for {
		text, err := show.JSON(out, "")
		if err != nil {
			return err
		}
		if len(text) < mostLine {
			return w.write(text)
		}
		out.Locks = out.Locks[:len(out.Locks)/2] // long names and labels: the first are kept
	}
}

func (w *Writer) write(text string) error {
	if w.size+len(text)+1 > mostBytes {
		return ErrFull
	}
	n, err := w.file.WriteString(text + "\n")
	w.size += n
	return err
}

// Close closes the file.
func (w *Writer) Close() error { return w.file.Close() }

// A Capture is a file of snapshots that is read. It keeps where they are, and reads one at a time.
type Capture struct {
	Server string // that was looked at
	Cut    bool   // the last snapshot is not complete, as its writer was killed, and is left out

	file   *os.File
	starts []int64 // of the snapshots, and the end of the last
}

// Open reads where the snapshots of a file are. It refuses what is no capture, in words.
func Open(path string) (*Capture, error) {
	info, err := os.Stat(path) // first: to open a pipe would wait for its writer
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: it is no regular file", show.Text(path))
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	c := &Capture{file: file}
	if err := c.open(); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("%s: %w", show.Text(path), err)
	}
	return c, nil
}

var errNoCapture = errors.New("it is no capture of holdfast top")

func (c *Capture) open() error {
	info, err := c.file.Stat()
	switch {
	case err != nil:
		return err
	case info.Size() > mostBytes:
		return fmt.Errorf("it has %d MiB, and a capture has at most %d", info.Size()>>20, mostBytes>>20)
	}
	lines := bufio.NewReaderSize(c.file, 64<<10)
	first, err := lines.ReadSlice('\n')
	if err != nil {
		return errNoCapture
	}
	var head header
	if err := json.Unmarshal(first, &head); err != nil || head.Capture != captureKind {
		return errNoCapture
	}
	if head.Version != captureVersion {
		return fmt.Errorf("it has the format %d, and this holdfast reads %d", head.Version, captureVersion)
	}
	c.Server = head.Server
	return c.indexLines(lines, int64(len(first)))
}

// indexLines notes where the snapshots begin.
func (c *Capture) indexLines(lines *bufio.Reader, at int64) error {
	c.starts = []int64{at}
	for {
		part, err := lines.ReadSlice('\n')
		at += int64(len(part))
		begun := c.starts[len(c.starts)-1]
		switch {
		case at-begun > mostLine:
			return fmt.Errorf("snapshot %d has more than %d MiB", len(c.starts), mostLine>>20)
		case err == nil:
			c.starts = append(c.starts, at)
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			c.Cut = at > begun
			if c.Len() == 0 {
				return errors.New("it has no snapshot")
			}
			return nil
		default:
			return err
		}
	}
}

// Len is how many snapshots there are.
func (c *Capture) Len() int { return len(c.starts) - 1 }

// At reads the snapshot with a number from 0. The Err of a snapshot that cannot be read says why.
func (c *Capture) At(i int) Snapshot {
	s, err := c.read(i)
	if err != nil {
		return Snapshot{Err: fmt.Errorf("snapshot %d of the capture cannot be read: %w", i+1, err)}
	}
	return s
}

func (c *Capture) read(i int) (Snapshot, error) {
	text := make([]byte, c.starts[i+1]-c.starts[i])
	if _, err := c.file.ReadAt(text, c.starts[i]); err != nil {
		return Snapshot{}, err
	}
	var in storedRecord
	if err := json.Unmarshal(text, &in); err != nil {
		return Snapshot{}, err
	}
	s := Snapshot{At: in.At, Took: time.Duration(in.Took * float64(time.Second)), Total: in.Total, Locks: in.Locks}
	if in.Error != "" {
		s.Err = errors.New(in.Error)
	}
	return s, nil
}

// Close closes the file.
func (c *Capture) Close() error { return c.file.Close() }
