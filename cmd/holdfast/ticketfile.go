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
	next *os.File // beside it, until it takes its name; nil: it is not open
}

// open makes sure that a ticket can be written, before there is one.
func (f *ticketFile) open() error {
	if info, err := os.Stat(f.path); err == nil && !info.Mode().IsRegular() {
		return &usageError{fmt.Errorf("--ticket %s: it must be a file", f.path)}
	}
	next, err := os.CreateTemp(filepath.Dir(f.path), ".holdfast-ticket-*") // of mode 0600
	if err != nil {
		return &usageError{fmt.Errorf("--ticket: %w", err)}
	}
	f.next = next
	if _, err := next.Write(make([]byte, 4<<10)); err != nil { // a disk that is full is found now
		f.close()
		return &usageError{fmt.Errorf("--ticket: %w", err)}
	}
	return nil
}

// write replaces the file by one that has the ticket. To write another, it must be opened again.
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
		f.next = nil
	}
}
