package store_test

import (
	"errors"
	"os"
	"reflect"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/store"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// What only RESP3 has becomes what RESP2 has in its place.
func TestPlain(t *testing.T) {
	got := store.Plain([]any{true, false, 2.5, map[any]any{"a": int64(1)}, []any{map[string]any{"b": nil}}})
	want := []any{int64(1), nil, "2.5", []any{"a", int64(1)}, []any{[]any{"b", nil}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %#v, want %#v", got, want)
	}
}

// FuzzPlain: whatever shape go-redis gives an answer, a store's reply is made of string, int64, nil
// and lists of these.
func FuzzPlain(f *testing.F) {
	for _, shape := range []string{"", "s", "i", "n", "b", "f", "e", "[si]", "[[n]]", "{si}", "{[s]{bf}}", "[", "{s",
		"]]"} {
		f.Add([]byte(shape))
	}
	f.Fuzz(func(t *testing.T, shape []byte) {
		value, _ := shaped(shape)
		if got := store.Plain(value); !isPlain(got) {
			t.Errorf("%T %v of %q", got, got, shape)
		}
	})
}

// shaped makes a value of a text in which each letter is one: what go-redis makes of RESP2 and
// RESP3.
func shaped(shape []byte) (value any, rest []byte) {
	if len(shape) == 0 {
		return nil, nil
	}
	what, rest := shape[0], shape[1:]
	switch what {
	case 's':
		return string(rest), rest
	case 'i':
		return int64(len(rest)), rest
	case 'b':
		return len(rest)%2 == 0, rest
	case 'f':
		return float64(len(rest)) / 3, rest
	case 'e':
		return errors.New("ERR in a list"), rest
	case '[', '{':
		var list []any
		for len(rest) > 0 && rest[0] != ']' && rest[0] != '}' {
			var one any
			one, rest = shaped(rest)
			list = append(list, one)
		}
		if len(rest) > 0 {
			rest = rest[1:]
		}
		if what == '[' {
			return list, rest
		}
		pairs := map[any]any{}
		for i := 0; i+1 < len(list); i += 2 {
			switch key := list[i].(type) {
			case string, int64, bool, float64:
				pairs[key] = list[i+1]
			}
		}
		return pairs, rest
	}
	return nil, rest
}

func isPlain(v any) bool {
	switch v := v.(type) {
	case nil, string, int64:
		return true
	case []any:
		for _, e := range v {
			if !isPlain(e) {
				return false
			}
		}
		return true
	}
	return false
}
