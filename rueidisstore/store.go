package rueidisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/store"
)

// New returns a store on a client of rueidis.NewClient. For a nil client it returns a store whose
// methods all fail with the reason. holdfast.New refuses such a store. New neither sends anything
// nor starts a goroutine, and never panics.
func New(client rueidis.Client) store.Store {
	if v := reflect.ValueOf(client); client == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return store.Unusable(errors.New("rueidisstore: the client is nil"))
	}
	if client.Mode() == rueidis.ClientModeCluster {
		return &cluster{client: client}
	}
	return &server{client}
}

// patience bounds what comes without a deadline.
const patience = 10 * time.Second

// send sends the commands to one server, each once, in one flush, and returns their replies.
func send(ctx context.Context, client rueidis.Client, commands []store.Command) []store.Reply {
	if err := store.Ended(ctx); err != nil {
		return store.Unsent(len(commands), err)
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	if len(commands) == 1 {
		only, err := build(client, commands[0])
		if err != nil {
			return store.Unsent(1, err)
		}
		return []store.Reply{answer(client.Do(ctx, only))}
	}
	built := make([]rueidis.Completed, len(commands))
	for i, command := range commands {
		var err error
		if built[i], err = build(client, command); err != nil {
			return store.Unsent(len(commands), err)
		}
	}
	replies := make([]store.Reply, len(commands))
	for i, result := range client.DoMulti(ctx, built...) {
		replies[i] = answer(result)
	}
	return replies
}

// poke sends something without effect that the smallest permissions allow, for the client to
// learn from the answer where the key is now.
func poke(ctx context.Context, client rueidis.Client, key string) {
	const none = "0000000000000000000000000000000000000000" // the digest of no script
	client.Do(ctx, client.B().Arbitrary("EVALSHA", none, "1").Keys(key).Blocking())
}

// mostResting bounds a renewal. The pool of a client has 1,024 connections by default.
const mostResting = 4096

// renew ends the connections for blocking commands that rest. Each is given a command that is too
// late to be written, so that the client closes it. If the client pipelines there, the command may
// be answered instead. A command that no connection was there for says that none rests, or that the
// client is closed: a closed one gives its last error for ever.
func renew(client rueidis.Client) {
	for range mostResting {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		late := &lateContext{Context: ctx}
		reply := answer(client.Do(late, client.B().Arbitrary("PING").Blocking()))
		cancel()
		if late.derived.Load() || reply.Unsent {
			return
		}
		if reply.Err == nil { // the client first uses the one that was used last
			dedicated, _ := client.Dedicate()
			dedicated.Close()
		}
	}
}

// A lateContext is a context whose deadline is over, though it does not say so yet. The client
// derives contexts from it in order to make a connection, or to wait for one: when none rests.
type lateContext struct {
	context.Context
	derived atomic.Bool
}

func (c *lateContext) Deadline() (time.Time, bool) { return time.Unix(1, 0), true }

func (c *lateContext) Value(key any) any {
	c.derived.Store(true)
	return c.Context.Value(key)
}

// build builds a command for the connections of blocking commands. It is no read in the eyes of
// rueidis, which sends only reads again.
func build(client rueidis.Client, args store.Command) (rueidis.Completed, error) {
	if len(args) == 0 {
		return rueidis.Completed{}, errors.New("rueidisstore: a request without arguments")
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
			return rueidis.Completed{}, fmt.Errorf("rueidisstore: an argument of a request is a %T, "+
				"not a string, []byte, int or int64", arg)
		}
	}
	return built.Blocking(), nil
}

// answer returns what became of a command.
func answer(result rueidis.RedisResult) store.Reply {
	msg, err := result.ToMessage()
	if err == nil {
		value, _ := msg.ToAny() // a nil has an error, too
		return store.Reply{Value: store.Plain(value)}
	}
	if rueidis.IsRedisNil(err) {
		return store.Reply{}
	}
	if refused, ok := rueidis.IsRedisErr(err); ok {
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
	return errors.Is(err, rueidis.ErrClosing) || errors.Is(err, rueidis.ErrNoCache) ||
		errors.As(err, &op) && op.Op == "dial"
}
