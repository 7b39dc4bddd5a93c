package traps_test

import (
	"context"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// Trap 19: order inside one second, or one millisecond, is not first come. Hundreds join within
// milliseconds, some give up while the others are served, and those that stay are served in the
// order of the server's line.
func TestQueueManyHandOversKeepOrder(t *testing.T) {
	t.Parallel()
	rounds, clients, each := 2, 4, 100
	if harness.Thorough {
		rounds = 33 // with those that give up: more than 10,000 hand-overs
	}
	srv := redisserver.Start(t)
	holder, heard := harness.Locker(t, srv.Addr(), nil), spyOn(t, srv)
	contenders := make([]*holdfast.Client, clients)
	for i := range contenders {
		contenders[i] = harness.Locker(t, srv.Addr(), nil)
	}
	served, late := 0, 0
	for range rounds {
		lease := harness.Lock(t, holder.Mutex("n"))
		var mu sync.Mutex
		var turns []turn
		var all sync.WaitGroup
		giveUp := make(map[string]context.CancelFunc)
		for i := range clients * each {
			ctx, cancel := context.WithCancel(harness.Within(t, harness.Patience))
			label := "w" + strconv.Itoa(i) + "."
			giveUp[label] = cancel
			m := contenders[i%clients].Mutex("n", holdfast.WithStrictOrder(), holdfast.WithLabel(label))
			all.Go(func() {
				got, err := m.Lock(ctx)
				if err != nil {
					return
				}
				mu.Lock()
				turns = append(turns, turn{label, got.Owner(), got.Token()})
				mu.Unlock()
				harness.HandBack(t, got)
			})
		}
		harness.Waiting(t, srv, "n", int64(clients*each))
		harness.Eventually(t, "all listen", func() bool { return harness.Listening(t, srv) == clients }) // who does not is passed over
		line := standing(t, srv, "n")
		harness.Release(t, lease)
		for range each / 4 {
			giveUp[line[rand.IntN(len(line))]]()
		}
		all.Wait()
		order := heard.inTime(t, srv, turns)
		served, late = served+len(order), late+len(turns)-len(order)
		stayed := slices.DeleteFunc(line, func(label string) bool { return !slices.Contains(order, label) })
		if !slices.Equal(order, stayed) {
			t.Fatalf("served %v, in the queue were %v", order, stayed)
		}
	}
	t.Logf("%d hand-overs in order, %d more were not taken up in time", served, late)
}

// A turn is that of a waiter: what its lease was.
type turn struct {
	label, id string
	token     int64
}

// A spy hears what the server says to all.
type spy struct{ *redis.PubSub }

func spyOn(t *testing.T, srv *redisserver.Server) spy {
	t.Helper()
	s := spy{harness.Client(t, srv).PSubscribe(t.Context(), "holdfast:@*")}
	t.Cleanup(func() { _ = s.Close() })
	if _, err := s.Receive(harness.Within(t, harness.Patience)); err != nil {
		t.Fatal(err)
	}
	return s
}

// inTime is the labels of those who took their first hand-over up. It waits for half a second, and
// whoever stood still for so long has to stand in the queue anew.
func (s spy) inTime(t *testing.T, srv *redisserver.Server, turns []turn) (labels []string) {
	t.Helper()
	harness.Must(t, srv, "PUBLISH", "holdfast:@end", "end")
	first := make(map[string]string) // the token by the id
	for ctx := harness.Within(t, harness.Patience); ; {
		m, err := s.ReceiveMessage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if m.Payload == "end" {
			break
		}
		if id, rest, ok := handOver(m.Payload); ok && first[id] == "" {
			first[id] = rest
		}
	}
	for _, turn := range turns {
		if token := first[turn.id]; token == "" || token == strconv.FormatInt(turn.token, 10) {
			labels = append(labels, turn.label)
		}
	}
	return labels
}

// handOver reads a message: to whom, with which token.
func handOver(message string) (id, token string, ok bool) {
	if len(message) < 40 || message[:2] != "3G" {
		return "", "", false
	}
	return message[2:24], message[24:40], true
}

var labels = regexp.MustCompile(`w\d+\.$`)

// standing is the labels of those in the queue, in order.
func standing(t *testing.T, srv *redisserver.Server, name string) (line []string) {
	t.Helper()
	for _, member := range harness.Must(t, srv, "ZRANGEBYSCORE", harness.KeyOf(name)+":queue", "1", "+inf").([]any) {
		line = append(line, labels.FindString(member.(string)))
	}
	return line
}
