package fence_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
)

// The code of docs/fencing.md, word for word.

type object struct {
	Token int64  `json:"token"` // of its last writer
	State string `json:"state"`
}

func update(ctx context.Context, url, name string, token int64, change func(state string) string) error {
	for {
		old, etag, err := get(ctx, url)
		if err != nil {
			return err
		}
		if token < old.Token {
			return &fence.LateError{Name: name, Token: token, Largest: old.Token}
		}
		err = putIf(ctx, url, etag, object{token, change(old.State)})
		if !errors.Is(err, errChanged) {
			return err
		}
	}
}

// errChanged is the answer to a put whose condition does not hold.
var errChanged = errors.New("another has written the object meanwhile")

// get returns an object and its ETag. An object that is not there has neither.
func get(ctx context.Context, url string) (o object, etag string, err error) {
	response, err := send(ctx, http.MethodGet, url, nil, nil)
	if err != nil {
		return o, "", err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
		return o, response.Header.Get("ETag"), json.NewDecoder(response.Body).Decode(&o)
	case http.StatusNotFound:
		return o, "", nil
	}
	return o, "", fmt.Errorf("get: %s", response.Status)
}

// putIf writes an object if its ETag is still the same, or if there is still none.
func putIf(ctx context.Context, url, etag string, o object) error {
	content, err := json.Marshal(o)
	if err != nil {
		return err
	}
	condition := http.Header{"If-Match": {etag}}
	if etag == "" {
		condition = http.Header{"If-None-Match": {"*"}}
	}
	response, err := send(ctx, http.MethodPut, url, condition, content)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusPreconditionFailed, http.StatusConflict: // S3: two puts at one moment
		return errChanged
	}
	return fmt.Errorf("put: %s", response.Status)
}

func send(ctx context.Context, method, url string, header http.Header, content []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	if header != nil {
		request.Header = header
	}
	return http.DefaultClient.Do(request)
}

// A bucket has objects as S3 has them: a put may have a condition, and the ETag is a digest of the
// content alone.
type bucket struct {
	mu      sync.Mutex
	content map[string][]byte
}

func startBucket(t *testing.T) (url string) {
	t.Helper()
	server := httptest.NewServer(&bucket{content: map[string][]byte{}})
	t.Cleanup(server.Close)
	return server.URL
}

func (b *bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	content, there := b.content[r.URL.Path]
	etag := fmt.Sprintf(`"%x"`, md5.Sum(content))
	if r.Method == http.MethodGet {
		if !there {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("ETag", etag)
		_, _ = w.Write(content)
		return
	}
	match, none := r.Header.Get("If-Match"), r.Header.Get("If-None-Match")
	if none == "*" && there || match != "" && (!there || match != etag) {
		w.WriteHeader(http.StatusPreconditionFailed)
		return
	}
	content, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	b.content[r.URL.Path] = content
}

// The old holder stands still between its get and its put. The new one writes meanwhile, or raises
// the object's token and writes nothing else. Whether the object was there before does not matter.
func TestObjectRefusesTheLateHolder(t *testing.T) {
	keep := func(state string) string { return state }
	for name, test := range map[string]struct {
		before bool // the object is there
		newer  func(string) string
		want   string
	}{
		"the new holder writes":            {true, func(string) string { return "new" }, "new"},
		"the new holder raises the fence":  {true, keep, "first"},
		"the new holder makes the object":  {false, func(string) string { return "new" }, "new"},
		"the new holder raises where none": {false, keep, ""},
	} {
		t.Run(name, func(t *testing.T) {
			url := startBucket(t) + "/order/42"
			if test.before {
				fatal.If(t, update(t.Context(), url, "order:42", 17, func(string) string { return "first" }))
			}
			err := update(t.Context(), url, "order:42", 17, func(string) string {
				fatal.If(t, update(t.Context(), url, "order:42", 18, test.newer))
				return "late"
			})
			var late *fence.LateError
			if !errors.As(err, &late) || *late != (fence.LateError{Name: "order:42", Token: 17, Largest: 18}) {
				t.Errorf("the late holder: %v", err)
			}
			if is, _, err := get(t.Context(), url); err != nil || is != (object{18, test.want}) {
				t.Errorf("the object is %+v: %v", is, err)
			}
		})
	}
}
