package hold

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
)

// An output is what a command left on one host, for the others.
type output struct {
	code int
	text []byte
	age  time.Duration
}

// An outputStore keeps the output of one name at the server, in the slot of the name. The key has
// the format, the token of the lease, the server's time in microseconds, the exit code and the
// text: "1:TOKEN:TIME:CODE:TEXT".
type outputStore struct {
	rdb    redis.UniversalClient
	prefix string
	name   string
}

func (s *outputStore) key() string {
	return s.prefix + ":{" + strings.NewReplacer("%", "%25", "}", "%7D").Replace(s.name) + "}:once"
}

const getOutput = `return {redis.call('TIME'), redis.call('GET', KEYS[1])}`

// get returns the output, or nil if there is none that is fresh.
func (s *outputStore) get(ctx context.Context, fresh time.Duration) (*output, error) {
	reply, err := s.rdb.Eval(ctx, getOutput, []string{s.key()}).Slice()
	if err != nil {
		return nil, s.failure(err)
	}
	if len(reply) < 2 || reply[1] == nil {
		return nil, nil
	}
	now, _ := reply[0].([]any)
	text, _ := reply[1].(string)
	parts := strings.SplitN(text, ":", 5)
	if len(parts) < 5 || parts[0] != "1" || len(now) < 2 {
		return nil, s.foreign()
	}
	var numbers [4]int64
	for i, number := range []any{now[0], now[1], parts[2], parts[3]} {
		if numbers[i], err = strconv.ParseInt(fmt.Sprint(number), 10, 64); err != nil {
			return nil, s.foreign()
		}
	}
	out := &output{code: int(numbers[3]), text: []byte(parts[4]),
		age: time.Duration(numbers[0]*1e6+numbers[1]-numbers[2]) * time.Microsecond}
	if out.age >= fresh {
		return nil, nil
	}
	return out, nil
}

// keepOutput writes unless another has written under a later lease.
const keepOutput = `local old = redis.call('GET', KEYS[1])
local token = old and string.match(old, '^1:(%d+):')
if old and not token then
  return 'foreign'
end
if old and tonumber(token) > tonumber(ARGV[1]) then
  return 'late'
end
local now = redis.call('TIME')
local head = '1:' .. ARGV[1] .. ':' .. now[1] .. string.format('%06d', now[2]) .. ':' .. ARGV[2] .. ':'
redis.call('SET', KEYS[1], head .. ARGV[3], 'PX', ARGV[4])
return 'kept'`

// keep replaces the output under the lease with a token.
func (s *outputStore) keep(ctx context.Context, token int64, out output, fresh time.Duration) error {
	keys := []string{s.key()}
	answer, err := s.rdb.Eval(ctx, keepOutput, keys, token, out.code, out.text, fresh.Milliseconds()).Text()
	switch {
	case err != nil:
		return s.failure(err)
	case answer == "foreign":
		return s.foreign()
	}
	return nil
}

// foreign is the error of a key that another program wrote.
func (s *outputStore) foreign() error {
	return s.storeError(holdfast.StoreForeign, fmt.Errorf("key %q holds no result of holdfast once", s.key()))
}

// answerKinds are what a server says that refuses a request.
var answerKinds = map[string]holdfast.StoreKind{
	"NOPERM": holdfast.StoreDenied, "ACL failure": holdfast.StoreDenied, "can't run this command": holdfast.StoreDenied,
	"NOAUTH": holdfast.StoreDenied, "WRONGPASS": holdfast.StoreDenied, "WRONGTYPE": holdfast.StoreForeign,
	"OOM": holdfast.StoreOutOfMemory, "READONLY": holdfast.StoreReadOnly, "LOADING": holdfast.StoreLoading,
}

func (s *outputStore) failure(err error) error {
	var answer redis.Error
	kind := holdfast.StoreUnreachable
	if errors.As(err, &answer) {
		kind = holdfast.StoreOther
		for sign, known := range answerKinds {
			if strings.Contains(answer.Error(), sign) {
				kind = known
			}
		}
	}
	return s.storeError(kind, err)
}

func (s *outputStore) storeError(kind holdfast.StoreKind, err error) error {
	return &holdfast.StoreError{Op: "result", Name: s.name, Kind: kind, Err: err}
}
