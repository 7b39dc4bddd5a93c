package redisstore_test

import (
	"context"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/storetest/redisserver"
)

// Trap 19: order inside one second, or one millisecond, is not first come. Hundreds join within milliseconds, some give up
// while the others are served, and those that stay are served in the order of the server's line.
func TestOrderOfManyHandOvers(t *testing.T) {
	t.Parallel()
	rounds, clients, each := 2, 4, 100
	if thorough {
		rounds = 33 // with those that give up: more than 10,000 hand-overs
	}
	srv := redisserver.Start(t)
	holder := locker(t, srv.Addr(), nil)
	contenders := make([]*holdfast.Client, clients)
	for i := range contenders {
		contenders[i] = locker(t, srv.Addr(), nil)
	}
	served := 0
	for range rounds {
		lease := lock(t, holder.Mutex("n"))
		var mu sync.Mutex
		var order []string
		var all sync.WaitGroup
		giveUp := make(map[string]context.CancelFunc)
		for i := range clients * each {
			ctx, cancel := context.WithCancel(within(t, patience))
			label := "w" + strconv.Itoa(i) + "."
			giveUp[label] = cancel
			m := contenders[i%clients].Mutex("n", holdfast.WithStrictOrder(), holdfast.WithLabel(label))
			all.Go(func() {
				got, err := m.Lock(ctx)
				if err != nil {
					return
				}
				mu.Lock()
				order = append(order, label)
				mu.Unlock()
				if err := got.Release(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		waiting(t, srv, "n", int64(clients*each))
		eventually(t, "all listen", func() bool { return listening(t, srv) == clients }) // who does not is passed over
		line := standing(t, srv, "n")
		release(t, lease)
		for range each / 4 {
			giveUp[line[rand.IntN(len(line))]]()
		}
		all.Wait()
		served += len(order)
		stayed := slices.DeleteFunc(line, func(label string) bool { return !slices.Contains(order, label) })
		if !slices.Equal(order, stayed) {
			t.Fatalf("served %v, in line were %v", order, stayed)
		}
	}
	t.Logf("%d hand-overs in order", served)
}

var labels = regexp.MustCompile(`w\d+\.$`)

// standing is the labels of those in line, in order.
func standing(t *testing.T, srv *redisserver.Server, name string) (line []string) {
	t.Helper()
	for _, member := range must(t, srv, "ZRANGEBYSCORE", keyOf(name)+":line", "1000000000000000", "+inf").([]any) {
		line = append(line, labels.FindString(member.(string)))
	}
	return line
}
