package rueidisstore

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/store"
)

// describe asks a server for its version, role and eviction policy. What it refuses to say stays
// empty.
func describe(ctx context.Context, client rueidis.Client) (store.Node, error) {
	var node store.Node
	limited := false
	replies := send(ctx, client, []store.Request{
		{Args: []any{"INFO"}},
	})
	for _, r := range replies {
		if r.Err != nil {
			return store.Node{}, r.Err
		}
		info, _ := r.Value.(string)
		for line := range strings.SplitSeq(info, "\n") {
			key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			switch key {
			case "redis_version":
				if node.Version == "" {
					node.Version = value
				}
			case "valkey_version": // redis_version is only what it is compatible with
				node.Version = value
			case "maxmemory":
				limited = value != "0"
			case "maxmemory_policy":
				node.Eviction = value
			case "role":
				node.Role = value
				if value == "slave" {
					node.Role = "replica"
				}
			}
		}
	}
	if !limited {
		node.Eviction = ""
	}
	return node, nil
}

// shards tells whether a server of the version knows SPUBLISH: Redis and Valkey do from 7.0.
func shards(version string) bool {
	major, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(major)
	return err == nil && n >= 7
}
