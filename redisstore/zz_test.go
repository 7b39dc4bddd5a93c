package redisstore_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

func TestZZ(t *testing.T) {
	all := startMasters(t, 3)
	var wg sync.WaitGroup
	for range 3 {
		c := all.open(t, &holdfast.Config{Prefix: "z", TrustNewNodes: true})
		defer c.Close()
		for i := range 3 {
			m := c.Mutex("n")
			if i == 0 {
				m = c.Mutex("n", holdfast.WithStrictOrder())
			}
			wg.Go(func() {
				for range 8 {
					l, err := m.Lock(within(t, 5*time.Second))
					if err != nil {
						t.Error(err)
						return
					}
					if err := l.Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	go func() {
		<-time.After(3 * time.Second)
		for i, s := range all {
			h, _ := s.Do("HGETALL", "z:{quorum}:n")
			w, _ := s.Do("ZRANGE", "z:{quorum}+n", "0", "-1")
			fmt.Println(i, h, "\n    ", w)
		}
	}()
	wg.Wait()
}
