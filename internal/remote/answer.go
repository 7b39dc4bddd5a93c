package remote

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/lockinfo"
)

const (
	format = "1"
	idSize = 22

	maxName   = 1 << 10  // bytes of a name
	maxAnswer = 16 << 10 // bytes of an answer
	maxFrames = 32       // of an answer
	maxText   = 300      // bytes of a function or a file
	maxAge    = 100 * 365 * 24 * time.Hour

	maxQuestions = 8                     // that wait at one server
	answerPause  = 10 * time.Millisecond // after each
	sendTimeout  = time.Second
)

// Channels are those of one prefix, at all servers of a client. Their methods are safe for
// concurrent use.
type Channels struct {
	Stores []wire.Store // one for each master of a quorum
	Prefix string       // of the client
}

func (c *Channels) questions() string        { return c.Prefix + "-remote:ask" }
func (c *Channels) answers(id string) string { return c.Prefix + "-remote:answer:" + id }
func publish(channel, text string) wire.Request {
	return wire.Request{Op: op, Args: []any{"PUBLISH", channel, text}}
}

// op is the operation, as errors name it.
const op = "stacks"

// A Report is what a process tells of a hold.
type Report struct {
	Token  int64            `json:"-"`
	Leases int              `json:"leases"` // how many the process has on the hold
	AgeMS  int64            `json:"age_ms"` // of the first of them
	Frames []lockinfo.Frame `json:"frames"` // of the call that took it, the innermost first
}

// Answer answers questions until ctx ends. Reports tells of the holds of a name. Refused is told
// that a server refuses.
func (c *Channels) Answer(ctx context.Context, reports func(name string) []Report, refused func(error)) {
	var all sync.WaitGroup
	for _, s := range c.Stores {
		all.Go(func() {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			stop := func(err error) {
				if isDenied(err) {
					refused(err)
					cancel()
				}
			}
			waiting := make(chan question, maxQuestions)
			all.Go(func() {
				for {
					select {
					case q := <-waiting:
						stop(c.answer(ctx, s, q, reports(q.name)))
						protocol.Pause(ctx, answerPause, nil)
					case <-ctx.Done():
						return
					}
				}
			})
			wire.Subscribe(ctx, s, c.questions(), questionReader{waiting}, stop)
		})
	}
	all.Wait()
}

// answer publishes the reports. The error is that of the first that could not be.
func (c *Channels) answer(ctx context.Context, s wire.Store, q question, reports []Report) error {
	if len(reports) == 0 {
		return nil
	}
	requests := make([]wire.Request, len(reports))
	for i, r := range reports {
		requests[i] = publish(c.answers(q.id), r.text())
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	for _, reply := range s.Do(ctx, requests) {
		if err := failure(c.answers(q.id), reply); err != nil {
			return err
		}
	}
	return nil
}

// text is the answer. Of texts that are too long, the ends are told.
func (r Report) text() string {
	frames := make([]lockinfo.Frame, min(len(r.Frames), maxFrames))
	for i := range frames {
		f := r.Frames[i]
		frames[i] = lockinfo.Frame{Function: shorten(f.Function), File: shorten(f.File), Line: f.Line}
	}
	r.Frames = frames
	text, _ := json.Marshal(r) // it has nothing that JSON cannot have
	return format + strconv.FormatInt(r.Token, 10) + "\n" + string(text)
}

func shorten(text string) string { return text[max(0, len(text)-maxText):] }

// A question asks for the stacks of the holds of a name.
type question struct{ id, name string }

// A questionReader reads questions, and drops what is none and what finds too many waiting.
type questionReader struct{ waiting chan<- question }

// Gap implements wire.Sink.
func (questionReader) Gap() {}

// Message implements wire.Sink.
func (r questionReader) Message(_, text string) {
	text, ok := strings.CutPrefix(text, format)
	if !ok || len(text) <= idSize || len(text) > idSize+maxName {
		return
	}
	select {
	case r.waiting <- question{text[:idSize], text[idSize:]}:
	default:
	}
}

// failure is why a message was not published; nil: it was.
func failure(channel string, reply wire.Reply) error {
	err := (&wire.Script{Op: op}).Failure(channel, reply, nil)
	if err != nil && reply.Node != "" {
		return wire.At(reply.Node, err)
	}
	return err
}

func isDenied(err error) bool {
	var failure *protocol.Failure
	return errors.As(err, &failure) && failure.Reason == protocol.Denied
}
