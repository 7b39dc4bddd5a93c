package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
)

// The limits of the library.
const (
	LeastTTL = 100 * time.Millisecond
	MostTTL  = 24 * time.Hour
	MaxText  = 1 << 10
)

// A Checklist collects all that is wrong with the arguments of a command.
type Checklist []error

// Check notes what is wrong, unless ok.
func (c *Checklist) Check(ok bool, format string, args ...any) {
	if !ok {
		*c = append(*c, fmt.Errorf(format, args...))
	}
}

// Err returns nil, or a *UsageError with all that is wrong.
func (c Checklist) Err() error {
	if len(c) == 0 {
		return nil
	}
	return Usage(errors.Join(c...))
}

// CheckName notes a bad NAME.
func CheckName(list *Checklist, name string) {
	list.Check(name != "" && len(name) <= MaxText, "NAME of %d bytes: it must have 1 to %d", len(name), MaxText)
}

// CheckPattern notes a bad PATTERN.
func CheckPattern(list *Checklist, pattern string) {
	list.Check(len(pattern) <= MaxText, "PATTERN of %d bytes: it must have at most %d", len(pattern), MaxText)
}

// CheckTTL notes what is wrong with --ttl.
func CheckTTL(list *Checklist, c *Connection, ttl time.Duration) {
	list.Check(ttl >= LeastTTL && ttl <= MostTTL, "--ttl %v: it must be %v to %v", ttl, LeastTTL, MostTTL)
	list.Check(!c.IsQuorum() || ttl <= server.QuorumTTL, "--ttl %v: on a quorum it must be at most %v", ttl,
		server.QuorumTTL)
}
