package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

// connect stands for what a program does:
//
//	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"}) // of go-redis
//	client, err := holdfast.New(redisstore.New(rdb), nil)
//
// This module requires no client library, so its examples run on a server in memory.
func connect() *holdfast.Client {
	server := memory.New(protocol.Features{Queue: true})
	client, err := holdfast.NewOn(server.Connect("holdfast"), &holdfast.Config{Label: "host 1"})
	if err != nil {
		log.Fatal(err)
	}
	return client
}

// One process at a time bills the order. Do waits for the lock, runs the function and releases the
// lock. WithWait bounds the waiting alone; ctx bounds the work too. The function's context ends
// early if the lock is lost. Storage that compares the tokens refuses a holder that is late.
func Example() {
	client := connect() // holdfast.New(redisstore.New(rdb), nil)
	defer client.Close()

	order := client.Mutex("order:42", holdfast.WithWait(10*time.Second))
	err := order.Do(context.Background(), func(ctx context.Context) error {
		lease, _ := holdfast.LeaseFrom(ctx)
		fmt.Println("billing order 42 with a token:", lease.Token() > 0)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: billing order 42 with a token: true
}

// A lease is what Lock returns. The work runs under a context that ends with the request, or when
// the lease is lost. Storage that compares its token refuses a holder that is late.
func ExampleMutex_Lock() {
	client := connect() // holdfast.New(redisstore.New(rdb), nil)
	defer client.Close()

	ctx := context.Background() // that of a request
	lease, err := client.Mutex("order:42", holdfast.WithWait(10*time.Second)).Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Release()
	ctx, cancel := lease.Bind(ctx)
	defer cancel()
	fmt.Println("holds", lease.Name(), lease.Token() > 0, ctx.Err())
	// Output: holds order:42 true <nil>
}

// The bound context ends with the request or with the lease, whichever is first. The context of the
// lease lives on when the request is cancelled.
func ExampleLease_Bind() {
	client := connect() // holdfast.New(redisstore.New(rdb), nil)
	defer client.Close()

	request, cancelRequest := context.WithCancel(context.Background())
	defer cancelRequest()
	lease, err := client.Mutex("order:42").Lock(request)
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Release()
	ctx, cancel := lease.Bind(request)
	defer cancel()

	cancelRequest() // the customer goes away
	<-ctx.Done()    // the work stops
	fmt.Println(ctx.Err(), lease.Err())
	// Output: context canceled <nil>
}

// The export proves its progress: each part that is done gives it another TTL. If it hangs, others
// get in when the TTL is over.
func ExampleLease_Extend() {
	client := connect() // holdfast.New(redisstore.New(rdb), nil)
	defer client.Close()
	ctx := context.Background()

	export := client.Mutex("export", holdfast.WithoutRenewal(), holdfast.WithTTL(time.Minute))
	lease, err := export.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Release()
	for part := range 3 {
		fmt.Println("exported part", part+1)
		if err := lease.Extend(ctx); err != nil {
			log.Fatal(err) // what follows could run beside another export
		}
	}
	// Output:
	// exported part 1
	// exported part 2
	// exported part 3
}

// Code that runs under a lease finds that lease in its context. Here the storage gets the fencing
// token, and refuses a holder that is late.
func ExampleLeaseFrom() {
	client := connect() // holdfast.New(redisstore.New(rdb), nil)
	defer client.Close()

	save := func(ctx context.Context, order string) error {
		lease, ok := holdfast.LeaseFrom(ctx)
		if !ok {
			return errors.New("save needs a lease")
		}
		fmt.Println("saved", order, "with a token of", lease.Name(), lease.Token() > 0)
		return nil
	}
	err := client.Mutex("order:42").Do(context.Background(), func(ctx context.Context) error {
		return save(ctx, "42")
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: saved 42 with a token of order:42 true
}

// TryLock does not wait. Its error says who holds the lock.
func ExampleMutex_TryLock() {
	client := connect() // holdfast.New(redisstore.New(rdb), nil)
	defer client.Close()
	ctx := context.Background()

	report := client.Mutex("nightly-report")
	lease, err := report.TryLock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Release()

	_, err = report.TryLock(ctx)
	var held *holdfast.HeldError
	if errors.As(err, &held) {
		fmt.Println("held by", held.Holder)
	}
	// Output: held by host 1
}

// A Locker is for code that takes a sync.Locker. Between Lock and Unlock it is not told of a loss,
// so the process ends itself when onError hears of one.
func ExampleMutex_Locker() {
	client := connect() // holdfast.New(redisstore.New(rdb), nil)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // bounds all waits
	defer cancel()

	locker := client.Mutex("spool").Locker(ctx, func(err error) { log.Fatal(err) })
	spooled := sync.NewCond(locker)
	jobs := 0
	go func() {
		locker.Lock()
		jobs++
		locker.Unlock()
		spooled.Signal()
	}()
	locker.Lock()
	for jobs == 0 {
		spooled.Wait()
	}
	locker.Unlock()
	fmt.Println("printed", jobs)
	// Output: printed 1
}

// Readers share the lock. A writer has it alone.
func ExampleRWMutex() {
	client := connect() // holdfast.New(redisstore.New(rdb), nil)
	defer client.Close()
	ctx := context.Background()

	config := client.RWMutex("config")
	one, err := config.RLock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	other, err := config.RLock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_, err = config.TryLock(ctx)
	fmt.Println("a writer beside readers:", errors.Is(err, holdfast.ErrHeld))
	if err := errors.Join(one.Release(), other.Release()); err != nil {
		log.Fatal(err)
	}
	err = config.Do(ctx, func(context.Context) error {
		fmt.Println("written")
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// a writer beside readers: true
	// written
}

// At most two exports run at a time, on all hosts together.
func ExampleSemaphore() {
	client := connect() // holdfast.New(redisstore.New(rdb), nil)
	defer client.Close()
	ctx := context.Background()

	exports := client.Semaphore("exports", 2)
	for n := range 3 {
		if _, err := exports.TryAcquire(ctx, 1); err != nil {
			fmt.Println("export", n+1, "must wait:", errors.Is(err, holdfast.ErrHeld))
			continue
		}
		fmt.Println("export", n+1, "runs")
	}
	// Output:
	// export 1 runs
	// export 2 runs
	// export 3 must wait: true
}

// A transfer holds both accounts. The order of the names does not matter: two transfers cannot
// deadlock.
func ExampleClient_All() {
	client := connect() // holdfast.New(redisstore.New(rdb), nil)
	defer client.Close()

	accounts := client.All([]string{"account:1", "account:2"})
	err := accounts.Do(context.Background(), func(context.Context) error {
		fmt.Println("moved the money")
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: moved the money
}

// One process leads until it stops or its lease is lost. Then another one leads.
func ExampleElection_Run() {
	client := connect() // holdfast.New(redisstore.New(rdb), nil)
	defer client.Close()
	ctx, stop := context.WithCancel(context.Background())

	err := client.Election("scheduler").Run(ctx, func(ctx context.Context) error {
		fmt.Println("leads")
		stop() // the process is shut down
		<-ctx.Done()
		return ctx.Err()
	})
	fmt.Println(errors.Is(err, context.Canceled))
	// Output:
	// leads
	// true
}

// The instances wait until a migration has counted down.
func ExampleLatch() {
	client := connect() // holdfast.New(redisstore.New(rdb), nil)
	defer client.Close()
	ctx := context.Background()

	migrated := client.Latch("schema 7")
	if err := migrated.Set(ctx, 1); err != nil {
		log.Fatal(err)
	}
	go func() {
		fmt.Println("migrates")
		if err := migrated.CountDown(ctx); err != nil {
			log.Print(err)
		}
	}()
	if err := migrated.Wait(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("serves")
	// Output:
	// migrates
	// serves
}

// A lease is taken in one step of a script and released in another, each a process of its own. The
// ticket is a secret: pass it by a file that others cannot read, not as an argument.
func ExampleClient_Attach() {
	client := connect() // holdfast.New(redisstore.New(rdb), nil)
	defer client.Close()
	ctx := context.Background()

	lease, err := client.Mutex("release", holdfast.WithTTL(time.Minute)).Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	ticket, err := lease.Detach() // nobody renews it until it is attached
	if err != nil {
		log.Fatal(err)
	}

	again, err := client.Attach(ctx, ticket) // in the next process
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(again.Name(), again.Token() == lease.Token(), again.Release())
	// Output: release true <nil>
}

// Two callers may move things in opposite directions at the same time, and each holds what the
// other one waits for. Then one of the calls ends, and names the cycle. It has given back what it
// held, so it begins anew, and the other one goes on. Where the names are known beforehand,
// Client.All takes them together without that.
func ExampleWithDeadlockCheck() {
	client := connect() // holdfast.New(redisstore.New(rdb), nil)
	defer client.Close()

	check := holdfast.WithDeadlockCheck()
	move := func(from, to string) error {
		return client.Mutex(from, check).Do(context.Background(), func(ctx context.Context) error {
			return client.Mutex(to, check).Do(ctx, func(context.Context) error { // ctx says what is held
				fmt.Println("from", from, "to", to)
				return nil
			})
		})
	}
	for {
		err := move("shelf 1", "shelf 2")
		var waited *holdfast.WaitError
		if errors.As(err, &waited) && waited.Reason == holdfast.WaitDeadlock {
			log.Print(waited.Deadlock) // who holds what, and waits for what
			continue
		}
		if err != nil {
			log.Fatal(err)
		}
		break
	}
	// Output: from shelf 1 to shelf 2
}

// A process that locks the same name again and again sends no request for it, while no other
// process wants the name. Release is no request either, so a write may still be on its way when the
// next lease begins. The storage tells by the token that it is late.
func ExampleWithRetain() {
	client := connect() // holdfast.New(redisstore.New(rdb), nil)
	defer client.Close()

	var newest int64 // what a storage knows
	write := func(token int64, what string) {
		if token < newest {
			fmt.Println(what, "is refused: it comes late")
			return
		}
		newest = token
		fmt.Println(what, "is written")
	}
	cart := client.Mutex("cart:7", holdfast.WithRetain(time.Minute))
	var late int64
	for i := range 5 {
		lease, err := cart.Lock(context.Background())
		if err != nil {
			log.Fatal(err)
		}
		if i == 3 {
			late = lease.Token() // of a write that arrives after the release
		} else {
			write(lease.Token(), fmt.Sprint("item ", i))
		}
		if err := lease.Release(); err != nil {
			log.Print(err)
		}
	}
	write(late, "item 3")
	// Output:
	// item 0 is written
	// item 1 is written
	// item 2 is written
	// item 4 is written
	// item 3 is refused: it comes late
}
