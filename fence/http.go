package fence

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
)

// Header carries the fencing token of a request. In the answer to a late request it carries the
// largest token that the storage has seen. The name of the lock is not sent: the service knows
// which lock guards what the request changes, and must not believe a client's word for it.
const Header = "Fencing-Token"

// ErrNoToken is matched by the error for a request without a fencing token, or with a wrong one.
var ErrNoToken = errors.New("fence: the request has no fencing token")

// SetHeader puts the token of a lease into a request's header.
func SetHeader(h http.Header, token int64) { h.Set(Header, strconv.FormatInt(token, 10)) }

// FromRequest returns the token of a request. The service passes it to [SQL] or [RedisScript], in
// the transaction that writes: a token that is compared before, apart from the write, refuses only
// those that are late by then.
func FromRequest(r *http.Request) (int64, error) {
	values := r.Header.Values(Header)
	if len(values) != 1 {
		return 0, fmt.Errorf("%w: %d headers %s", ErrNoToken, len(values), Header)
	}
	token, err := strconv.ParseInt(values[0], 10, 64)
	if err == nil {
		err = checkToken(token)
	}
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrNoToken, err)
	}
	return token, nil
}

// Refuse answers a request whose error is of the fence, and reports whether it did: 409 for
// [ErrLate], with the largest token in the header, and 428 for [ErrNoToken]. For other errors it
// writes nothing.
func Refuse(w http.ResponseWriter, err error) bool {
	var late *LateError
	switch {
	case errors.As(err, &late):
		SetHeader(w.Header(), late.Largest)
		http.Error(w, late.Error(), http.StatusConflict)
	case errors.Is(err, ErrNoToken):
		http.Error(w, err.Error(), http.StatusPreconditionRequired)
	default:
		return false
	}
	return true
}

// CheckResponse returns a *[LateError] if the service refused the request's token, as [Refuse]
// does. It returns nil for all other answers, also for those that say no for another reason.
func CheckResponse(resp *http.Response, name string, token int64) error {
	if resp.StatusCode != http.StatusConflict {
		return nil
	}
	largest, err := strconv.ParseInt(resp.Header.Get(Header), 10, 64)
	if err != nil || largest <= token {
		return nil // a conflict of another kind
	}
	return &LateError{Name: name, Token: token, Largest: largest}
}

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
