package holdfast

import (
	"context"
	"path"
	"runtime"
	"time"

	"github.com/holdfast-go/holdfast/internal/remote"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// maxReports is how many holds of one name this client answers for.
const maxReports = maxInspected

// Stacks returns which line of code holds a name: for each hold that Inspect tells, the call that
// took it. It asks all processes whose Config.Remote is set, and waits for up to 1 s. A hold of
// which no answer came has no Frames, and Why says so. An answer proves nothing: it is for people.
//
// It needs the permission to publish on the channel PREFIX-remote:ask and to subscribe to
// PREFIX-remote:answer:*; without it the error is a *StoreError of kind StoreDenied that names the
// channel. Other errors are those of Inspect. If ctx ends first, what came until then is returned.
func (c *Client) Stacks(ctx context.Context, name string) ([]lockinfo.Stack, error) {
	if err := c.checkCall(ctx, "Client.Stacks", name); err != nil {
		return nil, err
	}
	info, err := c.inspect(ctx, name)
	if err != nil {
		return nil, err
	}
	stacks, open := make([]lockinfo.Stack, len(info.Holds)), 0
	for i, hold := range info.Holds {
		stacks[i] = lockinfo.Stack{Hold: hold, Why: "only what remains of the hold is left"}
		if !hold.Remainder() {
			stacks[i].Why = "no process answered in time: its Config.Remote is off, or it may not listen, or it is gone"
			open++
		}
	}
	if open == 0 || len(c.remote.Stores) == 0 {
		return stacks, nil
	}
	answered := make([]bool, len(stacks))
	err = c.engine.Call(ctx, func() error {
		return c.remote.Ask(ctx, name, func(a remote.Answer) (enough bool) {
			for i, s := range stacks {
				if a.Token < s.Hold.Token || a.Token > s.Hold.LastToken || s.Hold.Remainder() || len(s.Frames) > 0 {
					continue
				}
				stacks[i] = lockinfo.Stack{Hold: s.Hold, Leases: a.Leases, Frames: a.Frames,
					Age: time.Duration(a.AgeMS) * time.Millisecond}
				if a.Err != nil {
					stacks[i] = lockinfo.Stack{Hold: s.Hold, Why: a.Err.Error()}
				}
				if !answered[i] {
					answered[i], open = true, open-1
				}
			}
			return open == 0
		})
	})
	if err != nil {
		return nil, operatorError("ask", name, err)
	}
	return stacks, nil
}

// answerStacks answers the questions of others until ctx ends.
func (c *Client) answerStacks(ctx context.Context) {
	c.remote.Answer(ctx, c.reports, func(err error) {
		c.refused.Do(func() {
			c.config.Logger.Warn("holdfast: nobody is told which code holds a lock: a server refuses that",
				"error", publicError("listen", "", err))
		})
	})
}

// reports returns what is told of the holds of a name.
func (c *Client) reports(name string) (out []remote.Report) {
	for _, s := range c.engine.Stacks(name, maxReports) {
		out = append(out, remote.Report{Token: s.Token, Leases: s.Leases, AgeMS: time.Since(s.Began).Milliseconds(),
			Frames: stackFrames(s.Frames)})
	}
	return out
}

// stackFrames returns a stack in words, without the frames of this module at its top.
func stackFrames(stack []uintptr) (out []lockinfo.Frame) {
	for frames := runtime.CallersFrames(trimStack(stack)); ; {
		frame, more := frames.Next()
		if frame.Function != "" && frame.Function != "runtime.goexit" {
			out = append(out, lockinfo.Frame{Function: frame.Function, File: path.Base(frame.File), Line: frame.Line})
		}
		if !more {
			return out
		}
	}
}
