package tickets

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/redisstore"
)

// waiterEnv has the address of the server, for a child that waits at a place.
const waiterEnv = "HOLDFAST_TICKETS_WAITER"

// waitAtPlace waits with the ticket on its standard input. It says so once it waits, and again when
// it holds. Then it holds until it is killed.
func waitAtPlace() error {
	seen := make(chan holdfast.EventKind, 100)
	client, closed, err := connect(os.Getenv(waiterEnv), observer(seen))
	if err != nil {
		return err
	}
	defer closed()
	in := bufio.NewScanner(os.Stdin)
	in.Scan()
	go func() {
		for kind := range seen {
			if kind == holdfast.EventWaiting {
				_ = json.NewEncoder(os.Stdout).Encode(step{At: "waiting"})
			}
		}
	}()
	lease, err := client.Attach(context.Background(), holdfast.Ticket(in.Text()))
	if err != nil {
		return err
	}
	_ = json.NewEncoder(os.Stdout).Encode(step{At: "held", Token: lease.Token()})
	in.Scan()
	return nil
}

// An observer passes the kinds of events on.
type observer chan<- holdfast.EventKind

func (o observer) Observe(e holdfast.Event) { o <- e.Kind }

func connect(addr string, o holdfast.Observer) (client *holdfast.Client, closed func(), err error) {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	client, err = holdfast.New(redisstore.New(rdb), &holdfast.Config{Observer: o})
	return client, func() { _ = client.Close(); _ = rdb.Close() }, err
}

// startWaiter starts a child at a place, and reads what it says until it says this.
func startWaiter(t *testing.T, srv *redisserver.Server, ticket holdfast.Ticket, until string) (said step, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), waiterEnv+"="+srv.Addr()), os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	_, _ = io.WriteString(in, string(ticket)+"\n")
	for decoder := json.NewDecoder(out); said.At != until; {
		if err := decoder.Decode(&said); err != nil {
			kill()
			t.Fatalf("the child at the place said %v instead of %q", err, until)
		}
	}
	return said, kill
}

// A process is killed while it waits at a place. A waiter behind passes, and the next process goes
// on at the place. That one is killed while it holds, and a third gets the same hold.
func TestPlaceOfKilledProcesses(t *testing.T) {
	srv := redisserver.Start(t)
	waits := make(chan holdfast.EventKind, 100)
	open := func(o holdfast.Observer) *holdfast.Client {
		client, closed, err := connect(srv.Addr(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(closed)
		return client
	}
	a, behind := open(nil), open(observer(waits))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	held := func(lease *holdfast.Lease, err error) *holdfast.Lease {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return lease
	}
	lease := held(a.Mutex("m").Lock(ctx))
	ticket, err := a.Mutex("m").Ticket(ctx, 10*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	_, kill := startWaiter(t, srv, ticket, "waiting")
	in := make(chan *holdfast.Lease, 1)
	lock := func() {
		l, err := behind.Mutex("m").Lock(ctx)
		if err != nil {
			t.Error(err)
		}
		in <- l
	}
	waiting := func() {
		for kind := range waits {
			if kind == holdfast.EventWaiting {
				return
			}
		}
	}
	go lock()
	waiting()
	kill()
	if err := lease.Release(); err != nil {
		t.Fatal(err)
	}
	next := held(<-in, nil) // although the place is before its own
	_, kill = startWaiter(t, srv, ticket, "waiting")
	kill() // again
	if err := next.Release(); err != nil {
		t.Fatal(err)
	}
	said, kill := startWaiter(t, srv, ticket, "held")
	kill()
	last := held(a.Attach(ctx, ticket))
	if last.Token() != said.Token {
		t.Errorf("token %d, want %d", last.Token(), said.Token)
	}
	if err := last.Release(); err != nil {
		t.Error(err)
	}
	if lease, err := a.Attach(ctx, ticket); err == nil {
		t.Errorf("a ticket that was used up holds with token %d", lease.Token())
	}
	if keys, err := srv.Do("EXISTS", "holdfast:{m}", "holdfast:{m}:queue"); err != nil || fmt.Sprint(keys) != "0" {
		t.Errorf("%v keys are left, %v", keys, err)
	}
}
