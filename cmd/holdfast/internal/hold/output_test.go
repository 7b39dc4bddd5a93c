package hold

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// A host that stood still does not replace the output of a later one.
func TestOutputOfLateHostIsNotKept(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: redisserver.Start(t).Addr()})
	defer rdb.Close()
	s := &outputStore{rdb: rdb, prefix: "p", name: "a%}b"}
	for _, token := range []int64{1 << 52, 1<<52 - 1} {
		if err := s.keep(t.Context(), token, output{text: []byte{'0' + byte(token&1)}}, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	out, err := s.get(t.Context(), time.Hour)
	found := rdb.Exists(t.Context(), "p:{a%25%7Db}:once").Val()
	if err != nil || string(out.text) != "0" || out.code != 0 || found != 1 {
		t.Errorf("got %v, %v", out, err)
	}
}
