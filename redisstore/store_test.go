package redisstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/store"
)

type ownClient struct{ *redis.Client }

func TestNewRefuses(t *testing.T) {
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": "127.0.0.1:1"}})
	defer ring.Close()
	const url = "Redis://u:geheim@host:6379"
	single, cluster := redis.NewClient(&redis.Options{Addr: url}),
		redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"a:1", url}})
	defer single.Close()
	defer cluster.Close()
	for name, test := range map[string]struct {
		rdb  redis.UniversalClient
		want string
	}{
		"nil":              {nil, "the client is nil"},
		"nil client":       {(*redis.Client)(nil), "is nil, or not from redis.NewClient"},
		"empty client":     {&redis.Client{}, "is nil, or not from redis.NewClient"},
		"nil cluster":      {(*redis.ClusterClient)(nil), "is nil, or not from redis.NewClusterClient"},
		"empty cluster":    {&redis.ClusterClient{}, "is nil, or not from redis.NewClusterClient"},
		"ring":             {ring, "a *redis.Ring cannot hold locks"},
		"of another type":  {ownClient{}, "a redisstore_test.ownClient is neither"},
		"URL as address":   {single, "the address of the client is a URL"},
		"URL of a cluster": {cluster, "the address of the client is a URL"},
		"nil of that type": {(*ownClient)(nil), "a *redisstore_test.ownClient is neither"},
	} {
		t.Run(name, func(t *testing.T) {
			st, ctx := redisstore.New(test.rdb), context.Background()
			replies := st.Do(ctx, "", []store.Command{{"PING"}, {"PING"}})
			if len(replies) != 2 || replies[1].Err == nil || !replies[1].Unsent {
				t.Fatalf("got %+v", replies)
			}
			_, err := st.Listen(ctx, "", false, nil)
			_, err2 := st.Nodes(ctx)
			for _, err := range []error{replies[0].Err, err, err2, st.Refresh(ctx, "")} {
				if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "geheim") {
					t.Errorf("got %v", err)
				}
			}
			var bad *holdfast.ArgumentError
			if _, err := holdfast.New(st, nil); !errors.As(err, &bad) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("New: %v", err)
			}
			if _, err := holdfast.NewQuorum([]store.Store{st, st, st}, nil); !errors.As(err, &bad) ||
				!strings.Contains(err.Error(), test.want) {
				t.Errorf("NewQuorum: %v", err)
			}
		})
	}
}
