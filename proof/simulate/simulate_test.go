package simulate

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	redis.SetLogger(silent{}) // go-redis logs every connection that fails, and here many do
	runtime.GOMAXPROCS(1)
	os.Exit(m.Run())
}

func TestOne(t *testing.T) {
	from, _ := strconv.ParseUint(os.Getenv("SEED"), 10, 64)
	n, _ := strconv.Atoi(os.Getenv("RUNS"))
	for seed := from; seed < from+uint64(max(n, 1)); seed++ {
		began := time.Now()
		r := Run(t, Draw(seed))
		t.Logf("%v %v", time.Since(began), r)
		for _, v := range r.Violations {
			t.Errorf("violation %v", v)
		}
		if os.Getenv("HISTORY") != "" {
			t.Log(r.History())
		}
	}
}
