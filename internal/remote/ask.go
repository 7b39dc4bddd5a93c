package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Wait is how long Ask waits for answers, from the moment that the question is asked.
const Wait = time.Second

// An Answer is what came of a hold.
type Answer struct {
	Report
	Err error // why it cannot be read; then only its Token is known
}

// Ask asks for the holds of a name, and calls take with each answer, until it says that these are
// enough, ctx ends or the time for answers is over. The error says that no server took the
// question: a *protocol.Failure, which names the channel.
func (c *Channels) Ask(ctx context.Context, name string, take func(Answer) (enough bool)) error {
	id := string(protocol.NewID())
	asking, cancel := context.WithTimeout(ctx, 2*Wait)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	answers := make(chan Answer, 1000)
	asked := make(chan error, len(c.Stores))
	for _, s := range c.Stores {
		all.Go(func() {
			wire.Subscribe(asking, s, c.answers(id), answerReader{answers}, func(err error) {
				if err == nil {
					question := publish(c.questions(), format+id+name)
					err = failure(c.questions(), s.Do(asking, []wire.Request{question})[0])
				}
				asked <- err
			})
		})
	}
	var over <-chan time.Time
	for failed := 0; ; {
		select {
		case err := <-asked:
			switch {
			case err != nil:
				if failed++; failed == len(c.Stores) {
					return c.explain(err)
				}
			case over == nil:
				timer := protocol.NewTimer(Wait)
				defer timer.Stop()
				over = timer.C
			}
		case a := <-answers:
			if take(a) {
				return nil
			}
		case <-over:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// explain says in a refusal what it takes to ask.
func (c *Channels) explain(err error) error {
	if failure := (*protocol.Failure)(nil); errors.As(err, &failure) && failure.Reason == protocol.Denied {
		failure.Err = fmt.Errorf("to ask takes the permissions to publish on %s and to subscribe to %s: %w",
			c.questions(), c.answers("*"), failure.Err)
	}
	return err
}

// An answerReader reads answers, and drops what is none.
type answerReader struct{ answers chan<- Answer }

// Gap implements wire.Sink.
func (answerReader) Gap() {}

// Message implements wire.Sink.
func (r answerReader) Message(_, text string) {
	if a, ok := readAnswer(text); ok {
		select {
		case r.answers <- a:
		default:
		}
	}
}

// readAnswer reads an answer. It is false if it is about no hold.
func readAnswer(text string) (a Answer, ok bool) {
	const longest = len("1 9007199254740992 ")
	size := len(text)
	head, found := strings.CutPrefix(text[:min(size, longest)], format)
	number, _, ended := strings.Cut(head, "\n")
	token, err := strconv.ParseInt(number, 10, 64)
	if !found || !ended || err != nil || token <= 0 {
		return a, false
	}
	a.Token = token
	if size > maxAnswer {
		a.Err = fmt.Errorf("its answer has %d bytes, more than the %d that are read", size, maxAnswer)
		return a, true
	}
	var r Report
	if err := json.Unmarshal([]byte(text[len(format)+len(number)+1:]), &r); err != nil {
		a.Err = errors.New("its answer cannot be read")
		return a, true
	}
	if r.AgeMS < 0 || r.AgeMS > maxAge.Milliseconds() || len(r.Frames) == 0 || len(r.Frames) > maxFrames {
		a.Err = errors.New("its answer says what cannot be")
		return a, true
	}
	r.Token = token
	return Answer{Report: r}, true
}
