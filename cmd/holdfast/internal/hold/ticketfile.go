package hold

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
)

// maxTicket is more than the text of any ticket.
const maxTicket = 4 << 20

// readTicket reads a ticket from a file, or from standard input if the file is "-". What acquire
// --json prints is taken as it is.
func readTicket(file string, in io.Reader) (holdfast.Ticket, error) {
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return "", cli.Usagef("--ticket: %w", err)
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxTicket))
	if err != nil {
		return "", cli.Usagef("--ticket %s: %w", file, err)
	}
	text = bytes.TrimSpace(text)
	if !bytes.HasPrefix(text, []byte("{")) {
		return holdfast.Ticket(text), nil
	}
	var object acquisition
	switch err := json.Unmarshal(text, &object); {
	case err != nil:
		return "", cli.Usagef("--ticket %s: it is no object of acquire --json: %w", file, err)
	case object.Ticket == "":
		return "", cli.Usagef("--ticket %s: the object has no ticket", file)
	}
	return object.Ticket, nil
}

// A ticketFile is a file that is to have a ticket. It is replaced in one step, and only its owner
// can read it. While this process waits, nothing lies beside it: a kill would leave that.
type ticketFile struct{ path string }

// probe makes sure that a ticket can be written, before there is one. It leaves nothing.
func (f ticketFile) probe() error {
	if info, err := os.Stat(f.path); err == nil && !info.Mode().IsRegular() {
		return cli.Usagef("--ticket %s: it must be a file", f.path)
	}
	err := f.withNewFile(func(next *os.File) error {
		_, err := next.Write(make([]byte, 4<<10)) // a disk that is full is found now
		return errors.Join(err, next.Close(), os.Remove(next.Name()))
	})
	if err != nil {
		return cli.Usagef("--ticket: %w", err)
	}
	return nil
}

// write replaces the file by one that has the ticket. If it fails, the file is as it was.
func (f ticketFile) write(ticket holdfast.Ticket) error {
	return f.withNewFile(func(next *os.File) error {
		_, err := next.WriteString(string(ticket) + "\n")
		ours, failed := next.Stat()
		if err = errors.Join(err, failed, next.Sync(), next.Close()); err != nil {
			return errors.Join(err, os.Remove(next.Name()))
		}
		if there, err := os.Stat(next.Name()); err == nil && !os.SameFile(ours, there) {
			return os.ErrExist
		}
		return os.Rename(next.Name(), f.path)
	})
}

// withNewFile calls use with a new file beside the file, for its owner alone. The name of the new
// file is the same each time. So what a process left that was killed inside of use is removed by
// the next one. Another process may do this at the same time, and take the new file away: then use
// is called again.
func (f ticketFile) withNewFile(use func(*os.File) error) error {
	const tries = 100
	name := fnv.New64a()
	_, _ = name.Write([]byte(filepath.Base(f.path)))
	path := filepath.Join(filepath.Dir(f.path), fmt.Sprintf(".holdfast-ticket-%x", name.Sum64()))
	var err error
	for range tries {
		if err = os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		var next *os.File
		if next, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			err = use(next)
		}
		if !errors.Is(err, os.ErrExist) && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return err
}
