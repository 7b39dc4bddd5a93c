package deadlock

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
)

// TestMain fails when a goroutine is left behind (trap 33).
func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// A ring is waiters in one cycle. Each waits for a name, whose number it has, and holds the one
// before. The last of them joined last.
type ring struct {
	protocol.Operators
	size, inspections int
}

func (r *ring) Inspect(_ context.Context, name string, _ protocol.Page) (protocol.Inspection, error) {
	r.inspections++
	i, err := strconv.Atoi(name)
	before := fmt.Sprint((i + r.size - 1) % r.size)
	stranger := protocol.Party{Unnamed: true}
	return protocol.Inspection{Kind: protocol.Mutex,
		Holds: []protocol.Hold{{ID: protocol.ID(name), State: protocol.HoldTaken, Party: stranger}},
		Queue: []protocol.Place{{ID: protocol.ID("waits for " + name), Order: int64(i), Until: 1, Party: stranger,
			Under: []protocol.Evidence{{Name: before, ID: protocol.ID(before)}}}},
	}, err
}

// A walk asks at most a hundred times: a cycle of a hundred names is found, and one of 101 is not.
func TestWalkIsBounded(t *testing.T) {
	for _, n := range []int{100, 101} {
		r, last := &ring{size: n}, fmt.Sprint(n-1)
		found, err := Walk(t.Context(), r, last, protocol.ID("waits for "+last))
		if err != nil || (found != nil) != (n == 100) || r.inspections != 100 {
			t.Errorf("of %d: %v, %v after %d inspections", n, found, err, r.inspections)
		}
	}
}
