package quorum

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// The nodes' clocks tell another process how old a hold is, whatever the clocks of the two
// processes show.
func TestOriginTellsAge(t *testing.T) {
	began := time.Now()
	servers := start(t)
	first, second := client(t, servers, true, id(1)), client(t, servers, true, id(2))
	warm(t, first)
	const age = time.Hour
	ticket := ask(1).Ticket
	granted := first.now() - age.Microseconds()
	origin := mutexOf(first).Origin(ticket, granted)
	r := mutexOf(second)
	adopted, err := r.Adopt(t.Context(), ticket, origin, true)
	if err != nil || !reflect.DeepEqual(adopted.Ticket, ticket) {
		t.Fatalf("%+v, %v", adopted, err)
	}
	is, slack := time.Duration(adopted.Server-adopted.Granted)*time.Microsecond, time.Since(began)
	if is < age-slack || is > age+slack {
		t.Errorf("it is %v old, want %v, give or take %v", is, age, slack)
	}
}

func TestOriginOfAnotherQuorumIsRefused(t *testing.T) {
	p := client(t, start(t), true, id(1))
	r := mutexOf(p)
	for _, origin := range []protocol.Origin{"", "m42", "n342:pchannel", "q3", "q31,2", "q31,2,3,4", "q41,2,3",
		"q3x,2,3"} {
		if _, err := r.Adopt(t.Context(), ask(1).Ticket, origin, true); !errors.Is(err, protocol.ErrOrigin) {
			t.Errorf("%q: %v", origin, err)
		}
	}
}
