// Code generated from rueidisstore by TestTwin there; DO NOT EDIT.

package valkeystore

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/valkey-io/valkey-go"

	"github.com/holdfast-go/holdfast/store"
)

// build builds a command for the connections of blocking commands. It is no read in the eyes of
// valkey-go, which sends only reads again.
func build(client valkey.Client, args store.Command) (valkey.Completed, error) {
	if len(args) == 0 {
		return valkey.Completed{}, errors.New("valkeystore: a request without arguments")
	}
	built := client.B().Arbitrary()
	for _, arg := range args {
		switch arg := arg.(type) {
		case string:
			built = built.Args(arg)
		case []byte:
			built = built.Args(string(arg))
		case int:
			built = built.Args(strconv.Itoa(arg))
		case int64:
			built = built.Args(strconv.FormatInt(arg, 10))
		default:
			return valkey.Completed{}, fmt.Errorf("valkeystore: an argument of a request is a %T, "+
				"not a string, []byte, int or int64", arg)
		}
	}
	return built.Blocking(), nil
}

// answer returns what became of a command.
func answer(result valkey.ValkeyResult) store.Reply {
	msg, err := result.ToMessage()
	if err == nil {
		value, _ := msg.ToAny() // a nil has an error, too
		return store.Reply{Value: store.Plain(value)}
	}
	if valkey.IsValkeyNil(err) {
		return store.Reply{}
	}
	if refused, ok := valkey.IsValkeyErr(err); ok {
		// The error has lost its "ERR ", the message has not. There is no message when a new
		// connection was refused, as with WRONGPASS; the request was not carried out then either.
		if line, _ := msg.ToString(); line != "" {
			return store.Reply{Refused: line}
		}
		return store.Reply{Refused: refused.Error()}
	}
	return store.Reply{Err: err, Unsent: neverWritten(err)}
}

// neverWritten knows the errors that come before a connection is there. On the connections for
// blocking commands, ErrClosing is one: closing the client leaves those alone that are in use.
func neverWritten(err error) bool {
	var op *net.OpError
	return errors.Is(err, valkey.ErrClosing) || errors.Is(err, valkey.ErrNoCache) ||
		errors.As(err, &op) && op.Op == "dial"
}
