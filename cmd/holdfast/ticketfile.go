package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-go/holdfast"
)

// maxTicket is more than the text of any ticket.
const maxTicket = 4 << 20

// readTicket reads a ticket from a file, or from standard input if the file is "-".
func readTicket(file string, in io.Reader) (holdfast.Ticket, error) {
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return "", &usageError{fmt.Errorf("--ticket: %w", err)}
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxTicket))
	if err != nil {
		return "", &usageError{fmt.Errorf("--ticket %s: %w", file, err)}
	}
	return holdfast.Ticket(strings.TrimSpace(string(text))), nil
}

// A ticketFile is a file that is to have a ticket. It is replaced in one step, and only its owner
// can read it.
type ticketFile struct {
	path string
	next *os.File // beside it, until it takes its name
}

// openTicket makes sure that a ticket can be written, before there is one.
func openTicket(path string) (*ticketFile, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, &usageError{fmt.Errorf("--ticket %s: it must be a file", path)}
	}
	next, err := os.CreateTemp(filepath.Dir(path), ".holdfast-ticket-*") // of mode 0600
	if err != nil {
		return nil, &usageError{fmt.Errorf("--ticket: %w", err)}
	}
	// A disk that is full is found now.
	if _, err := next.Write(make([]byte, 4<<10)); err != nil {
		f := &ticketFile{path, next}
		f.close()
		return nil, &usageError{fmt.Errorf("--ticket: %w", err)}
	}
	return &ticketFile{path, next}, nil
}

// write replaces the file by one that has the ticket.
func (f *ticketFile) write(ticket holdfast.Ticket) error {
	text := string(ticket) + "\n"
	_, err := f.next.WriteAt([]byte(text), 0)
	err = errors.Join(err, f.next.Truncate(int64(len(text))), f.next.Sync(), f.next.Close())
	if err == nil {
		err = os.Rename(f.next.Name(), f.path)
	}
	if err == nil {
		f.next = nil
	}
	return err
}

// close leaves nothing but what was written.
func (f *ticketFile) close() {
	if f.next != nil {
		_ = f.next.Close()
		_ = os.Remove(f.next.Name())
	}
}
