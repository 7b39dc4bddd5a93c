package native

import (
	"context"
	"io/fs"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/store"
)

// What package quorum has in common with this one: each of its nodes is a server, asked the same way.

// A Lane carries the requests of many goroutines to one server, batched where they meet.
type Lane struct{ lane }

// NewLane makes a lane. It sends nothing.
func NewLane(server store.Store) *Lane { return &Lane{lane{server: complete{server}}} }

// Do sends one request and waits for its reply, for ctx, or for the deadline.
func (l *Lane) Do(ctx context.Context, request store.Request, deadline time.Time) store.Reply {
	return l.do(ctx, request, deadline)
}

// A Clock bounds a server's time from its answers.
type Clock struct{ serverClock }

// Observe takes the server's microseconds of an answer and when it was received.
func (c *Clock) Observe(server int64, received time.Time) { c.observe(server, received) }

// NotAfter is the earliest that the server's clock can show at a local time, in sixteen digits; false when no answer is fresh.
func (c *Clock) NotAfter(local time.Time) (string, bool) { return c.notAfter(local) }

// At is what the server's clock shows at least at a local time; false when nothing was heard of it.
func (c *Clock) At(local time.Time) (server int64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server + local.Sub(c.received).Microseconds(), c.server != 0
}

// Digits16 writes a number as scripts compare numbers.
func Digits16(n int64) string { return digits16(n) }

// FailureOf reads why a reply to a script, sent with these words, is none; nil when it is one.
func FailureOf(op, name string, reply store.Reply, args []any) error {
	r := resource{spec: protocol.Spec{Name: name}}
	return r.failure(op, reply, keysIn(args)...)
}

// UnknownScript tells whether a server refused because it does not know the script.
func UnknownScript(reply store.Reply) bool { return isUnknownScript(reply.Refused) }

// Number reads a decimal number as scripts write it.
func Number(text string) (int64, bool) { return number(text) }

// Wire is the text of a script as it goes over the wire: includes resolved, comments and indentation cut.
func Wire(files fs.FS, name string) string {
	var out strings.Builder
	for _, l := range compose(files, name) {
		out.WriteString(l.text)
		out.WriteByte('\n')
	}
	return out.String()
}

// Deafness reads why there is no subscription, as requests are read.
func Deafness(channel string, err error) error {
	return (&Protocol{channel: channel}).deafness(err)
}
