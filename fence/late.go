package fence

import (
	"errors"
	"fmt"
)

// ErrLate is matched by the error for a token that is smaller than one the storage has seen.
var ErrLate = errors.New("fence: the token is late")

// A LateError says that another holder came after the one with this token. It matches [ErrLate].
type LateError struct {
	Name    string // of the fence
	Token   int64  // the token that was refused
	Largest int64  // the largest token that the storage has seen
}

func (e *LateError) Error() string {
	return fmt.Sprintf("fence: token %d of %q is late: the storage has seen %d", e.Token, e.Name, e.Largest)
}

// Is matches ErrLate.
func (e *LateError) Is(target error) bool { return target == ErrLate }
