// Command agent does what a test asks for, with the holdfast that it was built with. It reads
// requests as lines of JSON, runs them beside each other, and writes an answer to each:
//
//	agent PREFIX ADDR...   one server, or the masters of a quorum
//
// It ends, and gives everything back, with its standard input.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
	"github.com/holdfast-go/holdfast/proof/history"
	"github.com/holdfast-go/holdfast/proof/versions"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/store"
)

const ttl = 5 * time.Second

func main() {
	log.SetFlags(0)
	if len(os.Args) < 3 {
		log.Fatal("usage: agent PREFIX ADDR...")
	}
	if err := serve(os.Args[1], os.Args[2:]); err != nil {
		log.Fatal("agent: ", err)
	}
}

// An agent keeps the leases of one client.
type agent struct {
	client *holdfast.Client
	mu     sync.Mutex
	leases map[string]*holdfast.Lease
	out    *json.Encoder
}

func serve(prefix string, addrs []string) error {
	var stores []store.Store
	for _, addr := range addrs {
		rdb := redis.NewClient(&redis.Options{Addr: addr})
		defer rdb.Close()
		stores = append(stores, redisstore.New(rdb))
	}
	config := &holdfast.Config{Prefix: prefix, TTL: ttl, TrustNewNodes: len(stores) > 1}
	var client *holdfast.Client
	var err error
	if len(stores) > 1 {
		client, err = holdfast.NewQuorum(stores, config)
	} else {
		client, err = holdfast.New(stores[0], config)
	}
	if err != nil {
		return err
	}
	a := &agent{client: client, leases: map[string]*holdfast.Lease{}, out: json.NewEncoder(os.Stdout)}
	ctx, cancel := context.WithCancel(context.Background())
	in := json.NewDecoder(os.Stdin)
	var wg sync.WaitGroup
	for {
		var req versions.Request
		if err = in.Decode(&req); err != nil {
			break
		}
		wg.Go(func() { a.answer(ctx, req) })
	}
	cancel()
	wg.Wait()
	return client.Close()
}

func (a *agent) answer(ctx context.Context, req versions.Request) {
	answer, err := a.do(ctx, req)
	answer.ID = req.ID
	if err != nil {
		answer.Error, answer.Class = err.Error(), class(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.out.Encode(answer) // a test that is gone needs no answer
}

func (a *agent) do(ctx context.Context, req versions.Request) (answer versions.Answer, err error) {
	switch req.Do {
	case "lock", "try", "attach":
		lease, err := a.take(ctx, req)
		if err != nil {
			return answer, err
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		a.leases[req.Lease] = lease
		answer.Token = lease.Token()
		return answer, nil
	case "inspect":
		info, err := a.client.Inspect(ctx, req.Name)
		return versions.Answer{Holders: info.Holders, Waiters: info.Waiters, Foreign: info.Foreign}, err
	case "break":
		return answer, a.client.Break(ctx, req.Name, req.Token)
	}
	a.mu.Lock()
	lease := a.leases[req.Lease]
	a.mu.Unlock()
	switch req.Do {
	case "release":
		err = lease.Release()
	case "check":
		err = lease.Check(ctx)
	case "lost":
		<-lease.Done()
		err = context.Cause(leased.Context(lease))
	case "detach":
		var ticket holdfast.Ticket
		ticket, err = lease.Detach()
		answer.Ticket = string(ticket)
	default:
		err = fmt.Errorf("agent: it cannot %q", req.Do)
	}
	return answer, err
}

func (a *agent) take(ctx context.Context, req versions.Request) (*holdfast.Lease, error) {
	if req.Do == "attach" {
		return a.client.Attach(ctx, holdfast.Ticket(req.Ticket))
	}
	asked := history.Record{Kind: history.Lock, Name: req.Name}
	if req.Do == "try" {
		asked.Kind = history.TryLock
	}
	switch req.Kind {
	case "mutex":
		asked.Type = history.Mutex
	case "write", "read":
		asked.Type, asked.Shares = history.ReadWrite, req.Kind == "read"
	default:
		return nil, fmt.Errorf("agent: it has no kind %q", req.Kind)
	}
	return history.WayOf(a.client, asked)(ctx)
}

// class returns what a test compares: texts may change from version to version.
func class(err error) string {
	var storeErr *holdfast.StoreError
	var lost *holdfast.LostError
	switch {
	case errors.As(err, &lost):
		return "lost " + lost.Reason.Code()
	case errors.As(err, &storeErr):
		return "store " + string(storeErr.Kind)
	case errors.Is(err, holdfast.ErrTicket):
		return "ticket"
	case errors.Is(err, holdfast.ErrHeld):
		return "held"
	}
	return ""
}
