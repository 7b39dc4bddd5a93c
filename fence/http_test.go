package fence_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/holdfast-go/holdfast/fence"
)

func TestFromRequest(t *testing.T) {
	for _, test := range []struct {
		values []string
		token  int64 // 0: refused
	}{
		{[]string{"17"}, 17},
		{[]string{"9007199254740991"}, 1<<53 - 1},
		{nil, 0},
		{[]string{""}, 0},
		{[]string{"0"}, 0},
		{[]string{"-17"}, 0},
		{[]string{"9007199254740992"}, 0},
		{[]string{"99999999999999999999"}, 0},
		{[]string{"17, 18"}, 0},
		{[]string{"17", "18"}, 0}, // which of the two a proxy has added cannot be told
		{[]string{"1e3"}, 0},
		{[]string{" 17"}, 0},
	} {
		r := httptest.NewRequest(http.MethodPut, "/orders/42", nil)
		r.Header[http.CanonicalHeaderKey(fence.Header)] = test.values
		token, err := fence.FromRequest(r)
		if token != test.token || (err == nil) != (test.token != 0) || err != nil && !errors.Is(err, fence.ErrNoToken) {
			t.Errorf("%q: %d, %v", test.values, token, err)
		}
	}
}

func TestRefuse(t *testing.T) {
	late := &fence.LateError{Name: "order:42", Token: 17, Largest: 19}
	for _, test := range []struct {
		err    error
		status int // 0: not answered
	}{
		{nil, 0},
		{errors.New("disk full"), 0},
		{late, http.StatusConflict},
		{fmt.Errorf("save: %w", late), http.StatusConflict},
		{fmt.Errorf("save: %w", fence.ErrNoToken), http.StatusPreconditionRequired},
	} {
		w := httptest.NewRecorder()
		if refused := fence.Refuse(w, test.err); refused != (test.status != 0) {
			t.Errorf("%v: %v", test.err, refused)
		} else if refused && w.Code != test.status {
			t.Errorf("%v: %d, want %d", test.err, w.Code, test.status)
		}
		if !errors.Is(test.err, fence.ErrLate) {
			continue
		}
		var got *fence.LateError
		if err := fence.CheckResponse(w.Result(), "order:42", 17); !errors.As(err, &got) || *got != *late {
			t.Errorf("the client reads %v", err)
		}
	}
}

// A conflict that the fence has no part in is no late token.
func TestCheckResponseOfOtherAnswers(t *testing.T) {
	for _, test := range []struct {
		status int
		header string
	}{{200, ""}, {200, "19"}, {409, ""}, {409, "17"}, {409, "16"}, {409, "x"}, {428, "19"}} {
		resp := &http.Response{StatusCode: test.status, Header: http.Header{}}
		if test.header != "" {
			resp.Header.Set(fence.Header, test.header)
		}
		if err := fence.CheckResponse(resp, "order:42", 17); err != nil {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

func TestRedisError(t *testing.T) {
	for _, test := range []struct {
		err  error
		late int64 // the largest token; 0: another error
	}{
		{errors.New("LATE 19"), 19},
		{fmt.Errorf("save: %w", errors.New("LATE 19")), 19},
		{errors.New("LATE 19 script: 8c1f, on @user_script:3."), 19},
		{errors.New("LATE night"), 0},
		{errors.New("WRONGTYPE LATE 19"), 0},
		{errors.New("connection refused"), 0},
	} {
		err := fence.RedisError(test.err, "order:42", 17)
		var late *fence.LateError
		if errors.As(err, &late) != (test.late != 0) ||
			late != nil && *late != (fence.LateError{Name: "order:42", Token: 17, Largest: test.late}) {
			t.Errorf("%v: %v", test.err, err)
		}
		if late == nil && !errors.Is(err, test.err) {
			t.Errorf("%v became %v", test.err, err)
		}
	}
	if err := fence.RedisError(nil, "order:42", 17); err != nil {
		t.Error(err)
	}
}
