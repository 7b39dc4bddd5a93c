// Code generated from rueidisstore by TestTwin there; DO NOT EDIT.

package valkeystore_test

import (
	"context"
	"strings"
	"testing"

	"github.com/valkey-io/valkey-go"

	"github.com/holdfast-go/holdfast/store"
	"github.com/holdfast-go/holdfast/valkeystore"
)

type ownClient struct{ valkey.Client }

func TestNewRefusesNil(t *testing.T) {
	for name, rdb := range map[string]valkey.Client{"nil": nil, "nil of some type": (*ownClient)(nil)} {
		t.Run(name, func(t *testing.T) {
			st, ctx := valkeystore.New(rdb), context.Background()
			replies := st.Do(ctx, "", []store.Command{{"PING"}, {"PING"}})
			if len(replies) != 2 || replies[1].Err == nil || !replies[1].Unsent {
				t.Fatalf("got %+v", replies)
			}
			_, err := st.Listen(ctx, "", false, nil)
			_, err2 := st.Nodes(ctx)
			for _, err := range []error{replies[0].Err, err, err2} {
				if err == nil || !strings.Contains(err.Error(), "the client is nil") {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}
