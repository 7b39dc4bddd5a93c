package server

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/store"
)

// QuorumTTL is the longest TTL on a quorum. A master that restarted without its data does not count
// for that time.
const QuorumTTL = 5 * time.Minute

const quorumScheme = "quorum:"

// Members returns the URLs of the masters in quorum:URL,URL,URL, and nil for any other URL.
func Members(raw string) []string {
	rest, ok := strings.CutPrefix(raw, quorumScheme)
	if !ok {
		return nil
	}
	members := []string{""}
	for i, part := range strings.Split(rest, ",") {
		switch {
		case i == 0:
			members[0] = part
		case strings.Contains(part, "://"):
			members = append(members, part)
		default: // the comma is part of a URL
			members[len(members)-1] += "," + part
		}
	}
	return members
}

// Quorum makes one URL of those of several masters. A single URL stays as it is.
func Quorum(members []string) string {
	if len(members) == 1 {
		return members[0]
	}
	return quorumScheme + strings.Join(members, ",")
}

// forEachMember applies f to the members of a quorum. It returns false for a URL of one server.
func forEachMember(raw string, f func(string) string) (string, bool) {
	members := Members(raw)
	if members == nil {
		return "", false
	}
	for i, member := range members {
		members[i] = f(member)
	}
	return quorumScheme + strings.Join(members, ","), true
}

// Check says what is wrong with a URL of one server or of a quorum. It sends nothing.
func Check(raw string, files TLS) error {
	_, end, err := Client(raw, files, holdfast.Config{})
	if err == nil {
		end()
	}
	return err
}

// Client makes a client for the URL of one server or of a quorum. It sends nothing. end closes the
// connections, after the client.
func Client(raw string, files TLS, config holdfast.Config) (client *holdfast.Client, end func(), err error) {
	members := Members(raw)
	var open []redis.UniversalClient
	hangUp := func() {
		for _, rdb := range open {
			_ = rdb.Close()
		}
	}
	defer func() {
		if err != nil {
			hangUp()
		}
	}()
	if members == nil {
		rdb, err := Connect(raw, files)
		if err != nil {
			return nil, nil, err
		}
		open = append(open, rdb)
		client, err = holdfast.New(redisstore.New(rdb), &config)
		return client, hangUp, err
	}
	var stores []store.Store
	seen := map[string]bool{}
	for i, member := range members {
		bad := func(err error) error { return fmt.Errorf("master %d of %d: %w", i+1, len(members), err) }
		rdb, err := Connect(member, files)
		if err != nil {
			return nil, nil, bad(err)
		}
		open = append(open, rdb)
		if seen[member] {
			return nil, nil, bad(errors.New("its URL is given twice, and the masters of a quorum are different servers"))
		}
		seen[member] = true
		if one, ok := rdb.(*redis.Client); !ok || one == nil {
			return nil, nil, bad(errors.New("its URL names several servers, and a master of a quorum is a single server"))
		}
		stores = append(stores, redisstore.New(rdb))
	}
	if n := len(members); n < 3 || n > 9 || n%2 == 0 {
		return nil, nil, fmt.Errorf("%d masters: a quorum has 3, 5, 7 or 9", n)
	}
	config.MaxTTL = min(max(config.MaxTTL, config.TTL), QuorumTTL)
	if config.MaxTTL == 0 {
		config.MaxTTL = QuorumTTL
	}
	client, err = holdfast.NewQuorum(stores, &config)
	return client, hangUp, err
}
