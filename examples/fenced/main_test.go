//go:build unix

package main

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/database"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// TestMain is the service itself in a process that begins as the test does.
func TestMain(m *testing.M) {
	if os.Getenv("FENCED_SERVICE") != "" {
		main()
		return
	}
	os.Exit(leak.Main(m))
}

// A process of the service.
type process struct {
	*os.Process
	url string
}

// start runs a process of the service until the test is over.
func start(t *testing.T, environ ...string) process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "127.0.0.1:0") // killed at the end
	cmd.Env = append(append(os.Environ(), "FENCED_SERVICE=1"), environ...)
	cmd.Stderr = os.Stderr
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() })
	line, err := bufio.NewReader(output).ReadString('\n')
	addr, ok := strings.CutPrefix(line, "serving on ")
	if !ok {
		t.Fatalf("the service says %q: %v", line, err)
	}
	return process{cmd.Process, "http://" + strings.TrimSpace(addr)}
}

func (p process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// answer is what the service said.
type answer struct {
	status int
	text   string
	err    error
}

func (p process) bill(ctx context.Context, order string) (a answer) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/orders/"+order+"/bill", nil)
	if err != nil {
		return answer{err: err}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return answer{err: err}
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, strings.TrimSpace(string(text)), err}
}

// The holder is stopped while it charges, for longer than its TTL. Another process bills the order.
// The first goes on with its answer from the provider, and the database refuses its bill.
func TestHolderThatIsStoppedPastItsTTLWritesNothing(t *testing.T) {
	if os.Getenv("HOLDFAST_PROOF") != "1" {
		t.Skip("needs PostgreSQL and seconds: only with HOLDFAST_PROOF=1")
	}
	var charges atomic.Int64
	charging, charged := make(chan struct{}), make(chan struct{})
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := charges.Add(1)
		if n == 1 || r.Header.Get("Idempotency-Key") == "43" {
			charging <- struct{}{}
			<-charged
		}
		fmt.Fprintf(w, "bill-%d", n)
	}))
	defer provider.Close()
	dsn := database.StartPostgreSQL(t).DSN
	redis := redisserver.Start(t)
	environ := []string{"REDIS_URL=redis://" + redis.Addr(), "DATABASE_URL=" + dsn, "PAYMENTS_URL=" + provider.URL}
	first, second := start(t, environ...), start(t, environ...)
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "INSERT INTO orders VALUES ('42', 9900), ('43', 100)"); err != nil {
		t.Fatal(err)
	}

	late := make(chan answer, 1)
	go func() { late <- first.bill(t.Context(), "42") }()
	select {
	case <-charging:
	case a := <-late:
		t.Fatalf("the first process: %+v", a)
	}
	first.signal(t, syscall.SIGSTOP)
	charged <- struct{}{} // the provider's answer waits for the first process
	if a := second.bill(t.Context(), "42"); a.status != http.StatusOK || a.text != "bill-2" {
		t.Errorf("the second process: %+v", a)
	}
	first.signal(t, syscall.SIGCONT)
	a := <-late
	if a.status != http.StatusConflict || !strings.Contains(a.text, `of "order:42" is late`) {
		t.Errorf("the late holder: %+v", a)
	}
	t.Logf("the late holder was told: %d %s", a.status, a.text)
	bill := ""
	if err := db.QueryRowContext(t.Context(), "SELECT bill FROM orders WHERE id = '42'").Scan(&bill); err != nil ||
		bill != "bill-2" {
		t.Errorf("the order has %q, want bill-2: %v", bill, err)
	}
	// The order is billed: nobody is charged again, in either process.
	for _, p := range []process{first, second} {
		if a := p.bill(t.Context(), "42"); a.status != http.StatusOK || a.text != "bill-2" {
			t.Errorf("asked again: %+v", a)
		}
	}
	if n := charges.Load(); n != 2 {
		t.Errorf("there were %d charges", n)
	}

	// A process that is asked to end while it charges saves the bill before.
	go func() { late <- first.bill(t.Context(), "43") }()
	<-charging
	first.signal(t, syscall.SIGTERM)
	ended := make(chan error, 1)
	go func() { _, err := first.Wait(); ended <- err }()
	select {
	case <-ended:
		t.Fatal("it ended while it charged")
	case <-time.After(time.Second):
	}
	charged <- struct{}{}
	if a := <-late; a.status != http.StatusOK {
		t.Errorf("its answer is %+v", a)
	}
	<-ended
	if held, err := redis.Do("EXISTS", "holdfast:{order:43}"); err != nil || held != int64(0) {
		t.Errorf("its lock is still held: %v, %v", held, err)
	}
}
