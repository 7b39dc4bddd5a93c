package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/server"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// Of a quorum, the commands show what each master says, and the verdict.
func TestSeeAQuorum(t *testing.T) {
	long(t)
	var urls []string
	var masters []*redisserver.Server
	for range 3 {
		master := redisserver.Start(t)
		masters = append(masters, master)
		urls = append(urls, "redis://"+master.Addr())
	}
	t.Setenv("REDIS_URL", server.Quorum(urls))
	client, end, err := server.Client(server.Quorum(urls), server.TLS{}, holdfast.Config{Label: "web@a", TrustNewNodes: true})
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	defer client.Close()
	if _, err := client.Quorum(t.Context()); err != nil {
		t.Fatal(err)
	}
	lease, err := client.Mutex("job").TryLock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// A master that stands still for a moment is away in that moment: then expect tries again.
	expect := func(code int, args []string, want ...string) {
		t.Helper()
		for late := time.Now().Add(30 * time.Second); ; {
			var out, errs bytes.Buffer
			got := run(context.Background(), args, strings.NewReader(""), &out, &errs)
			output := out.String() + errs.String()
			if got == code && !slices.ContainsFunc(want, func(text string) bool { return !strings.Contains(output, text) }) {
				return
			}
			if time.Now().After(late) {
				t.Fatalf("%v: exit code %d, want %d, and %q in:\n%s", args, got, code, want, output)
			}
		}
	}
	expect(0, []string{"inspect", "job"}, "node 1  yes     held: web@a, token ", "verdict: held, by 3 of 3 masters that count")
	expect(0, []string{"inspect", "-o", "json", "job"}, `"masters": [`, `"node": "node 3",`, `"counts": true`)
	expect(0, []string{"ls"}, "job   mutex  held   web@a")
	masters[2].Kill()
	expect(0, []string{"inspect", "job"}, "node 3  no      ", "verdict: held, by 2 of 3 masters that count")
	expect(0, []string{"ls", "--sort", "age"}, "job   mutex  held   web@a") // top looks as this does
	expect(1, []string{"break", "job", "--token", "1"}, "nothing was broken")
	expect(0, []string{"break", "job", "--token", fmt.Sprint(lease.Token())}, "broken: job")
	<-lease.Done()
	masters[1].Kill()
	expect(0, []string{"inspect", "job"}, "verdict: none, 1 of 3 masters count, 2 are needed")
	expect(69, []string{"ls"}, "holdfast: ")
	expect(69, []string{"break", "job", "--token", fmt.Sprint(lease.Token())}, "holdfast: ")
}
