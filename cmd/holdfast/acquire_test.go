package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast"
)

// With a short TTL the time of a request can be over while a connection is still being made. Such a server is asked again; one that
// refuses the connection, or us, is not.
func TestUnanswered(t *testing.T) {
	late := fmt.Errorf("dial: %w", context.DeadlineExceeded)
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&holdfast.StoreError{Kind: holdfast.StoreNoAnswer, Err: late}, true},
		{&holdfast.StoreError{Kind: holdfast.StoreUnreachable, Err: late}, true},
		{&holdfast.StoreError{Kind: holdfast.StoreUnreachable, Err: syscall.ECONNREFUSED}, false},
		{&holdfast.StoreError{Kind: holdfast.StoreDenied, Err: errors.New("WRONGPASS")}, false},
		{&holdfast.HeldError{}, false},
		{nil, false},
	} {
		if got := unanswered(c.err); got != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}
