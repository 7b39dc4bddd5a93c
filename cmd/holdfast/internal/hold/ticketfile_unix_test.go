//go:build unix

package hold

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast"
)

// What a process left that was killed while it wrote its ticket goes with the next one. Two that
// write to one file take no file away from each other: one ticket is there in the end.
func TestTicketFile(t *testing.T) {
	dir := t.TempDir()
	file := ticketFile{filepath.Join(dir, "ticket")}
	err := file.withNewFile(func(next *os.File) error {
		_, err := next.WriteString("half a tick")
		return errors.Join(err, next.Close()) // and then the process was killed
	})
	if left, _ := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Fatalf("%v, %v", left, err)
	}
	var writers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() {
			for range 10 {
				if err := errors.Join(file.probe(),
					file.write(holdfast.Ticket(strings.Repeat(strconv.Itoa(i), 100)))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	text, err := readTicket(file.path, nil)
	if len(text) != 100 || strings.Count(string(text), string(text[:1])) != 100 || err != nil {
		t.Errorf("the file has %q, %v", text, err)
	}
	if left, err := os.ReadDir(dir); len(left) != 1 || left[0].Name() != "ticket" || err != nil {
		t.Errorf("%v is left, %v", left, err)
	}
}
