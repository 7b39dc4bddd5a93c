// Package server connects the commands to a server of the Redis family: one that the user names by
// URL, one that this package starts on a free loopback port, or one that is embedded in the
// process.
//
// A started server ends with the process that started it, also after kill -9: see Keep.
package server

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// A Server is a server that answers.
type Server struct {
	URL  string // for clients; it may contain a password
	Name string // for people: product and version

	stop func() error
}

// Open returns a server for the demo: the one at a URL if there is a URL, or else a server program
// on the PATH, started with keeper as by Start, or else an embedded server. embedded asks for that
// even where there is a program. where says which server it is, for people.
func Open(ctx context.Context, rawURL string, embedded bool, keeper []string) (s *Server, where string, err error) {
	path, found := Find()
	switch {
	case rawURL != "":
		s, err = Use(ctx, rawURL)
		return s, "at " + Redact(rawURL), err
	case embedded:
		s, err = Embed()
		return s, "as asked for", err
	case !found:
		s, err = Embed()
		return s, "as there is no redis-server on the PATH", err
	}
	if s, err = Start(ctx, path, keeper); err != nil {
		return nil, "", fmt.Errorf("%w (--embedded does without)", err)
	}
	return s, fmt.Sprintf("%s, started for this demo at %s", path, s.URL), nil
}

// Use returns the server at a URL. It sends one request: a wrong address is an error here, and not
// later.
func Use(ctx context.Context, rawURL string) (*Server, error) {
	s := &Server{URL: rawURL, stop: func() error { return nil }}
	if err := s.identify(ctx); err != nil {
		return nil, fmt.Errorf("no answer from %s: %w", Redact(rawURL), err)
	}
	return s, nil
}

// Stop ends a server that was started or embedded here, and returns after its end. A server of the
// user goes on.
func (s *Server) Stop() error {
	return s.stop()
}

// Forget deletes all keys that begin with prefix. The prefix must have no character of a pattern.
func (s *Server) Forget(ctx context.Context, prefix string) error {
	err := s.withClient(func(rdb *redis.Client) error {
		keys := rdb.Scan(ctx, 0, prefix+"*", 1000).Iterator()
		for keys.Next(ctx) {
			if err := rdb.Del(ctx, keys.Val()).Err(); err != nil {
				return err
			}
		}
		return keys.Err()
	})
	if err != nil {
		return fmt.Errorf("deleting the keys %s*: %w", prefix, err)
	}
	return nil
}

// identify sets Name to the product and version that the server reports.
func (s *Server) identify(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return s.withClient(func(rdb *redis.Client) error {
		if err := rdb.Ping(ctx).Err(); err != nil {
			return err
		}
		info, err := rdb.Info(ctx, "server").Result()
		if err != nil {
			s.Name = "a server that does not tell its version" // INFO needs a permission
			return nil
		}
		s.Name = product(info)
		return nil
	})
}

// withClient calls use with a client that it closes afterwards.
func (s *Server) withClient(use func(*redis.Client) error) error {
	options, err := ParseURL(s.URL)
	if err != nil {
		return err
	}
	rdb := redis.NewClient(options)
	defer rdb.Close()
	return use(rdb)
}

// product reads the reply of INFO. Valkey reports redis_version 7.2.4 too, for old clients.
func product(info string) string {
	fields := map[string]string{}
	for line := range strings.Lines(info) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[key] = value
		}
	}
	switch {
	case fields["valkey_version"] != "":
		return "Valkey " + fields["valkey_version"]
	case fields["redis_version"] != "":
		return "Redis " + fields["redis_version"]
	}
	return "a server without a version"
}

// Embed starts a server in this process, on a free loopback port. It stores nothing on disk and is
// slow: it is for trials.
func Embed() (*Server, error) { return EmbedAt("127.0.0.1:0") }

// EmbedAt is Embed at an address.
func EmbedAt(addr string) (*Server, error) {
	mini := miniredis.NewMiniRedis()
	// Without a clock, no key expires. ClockTTL moves the clock at each access, under the server's
	// own lock. Regular steps from outside would shorten the life of a key by the time since the
	// last step. A lease could then end at the server while its holder still trusts it.
	mini.ClockTTL(true)
	if err := mini.StartAddr(addr); err != nil {
		return nil, fmt.Errorf("embedded server: %w", err)
	}
	return &Server{
		URL:  "redis://" + mini.Addr(),
		Name: "an in-memory server inside this program",
		stop: func() error { mini.Close(); return nil },
	}, nil
}
