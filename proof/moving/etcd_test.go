package moving

import (
	"context"
	"errors"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/holdfast-go/holdfast/examples/moving"
)

// Work of release N ends with the session of its old lock, and the error says so.
func TestEtcdSessionEnds(t *testing.T) {
	long(t)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{startEtcd(t)}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	session, err := concurrency.NewSession(client, concurrency.WithTTL(10))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err = moving.UnderEtcd(ctx, session, "/order/42", func(ctx context.Context) error {
		// an operator, or the server, which heard nothing
		if _, err := client.Revoke(ctx, session.Lease()); err != nil {
			t.Error(err)
		}
		<-ctx.Done()
		return context.Cause(ctx)
	})
	if !errors.Is(err, moving.ErrOldLost) {
		t.Errorf("it ended with %v", err)
	}
}
