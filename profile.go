package holdfast

import (
	"io"
	"net/http"
	"runtime"

	"github.com/holdfast-go/holdfast/internal/profile"
)

// A Profile shows where a process waits for locks: the time by the stack of the call of Lock, and
// by kind and Config.Class of the name. It is for go tool pprof, like the mutex profile of package
// runtime/pprof. Its samples are the waits of calls that had to wait, and their delay. It sums up
// since the client was made. It is safe for concurrent use.
//
// The profiles of several processes can be merged: go tool pprof takes several at once.
type Profile struct {
	inner *profile.Profile // nil: there is none
}

// Profile returns the profile of a client with Config.Profile. Without it, and of a zero Client,
// the profile is empty.
func (c *Client) Profile() *Profile {
	if c == nil {
		return &Profile{}
	}
	return &Profile{c.profile}
}

// WriteTo writes the profile as it is now. The error is that of w.
func (p *Profile) WriteTo(w io.Writer) (n int64, err error) {
	inner := profile.New()
	if p != nil && p.inner != nil {
		inner = p.inner
	}
	counted := &counter{w: w}
	err = inner.Write(counted, ours)
	return counted.n, err
}

// ServeHTTP serves the profile as a file. It asks nobody who may read it: functions, files and
// classes are told.
//
//	http.Handle("/debug/holdfast", client.Profile())
//
//	go tool pprof http://localhost:8080/debug/holdfast
func (p *Profile) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="holdfast.pb.gz"`)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = p.WriteTo(w) // the reader has gone
}

// A counter counts bytes.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// profiled adds the end of a wait to the profile. It is called in the goroutine of the caller.
func (c *Client) profiled(e Event) {
	switch {
	case c.profile == nil || !e.Contended:
	case e.Kind == EventGranted, e.Kind == EventPassed, e.Kind == EventGaveUp:
		s := profile.Sample{Kind: e.LockKind, Class: e.Class}
		runtime.Callers(2, s.Stack[:])
		c.profile.Add(s, e.Waited)
	}
}
