package main

import (
	"bytes"
	"os"
	"regexp"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

func TestLateWriteIsRefused(t *testing.T) {
	srv := redisserver.Start(t)
	var out bytes.Buffer
	if err := run(t.Context(), &out, "redis://"+srv.Addr()); err != nil {
		t.Fatalf("%v, after:\n%s", err, &out)
	}
	want := regexp.MustCompile(`^the first holder has token (\d+), and stands still
the second holder has token (\d+), and wrote "billed"
the first holder goes on, and is refused: fence: .*token.*
$`)
	tokens := want.FindSubmatch(out.Bytes())
	if tokens == nil {
		t.Fatalf("it printed:\n%s", &out)
	}
	if len(tokens[1]) != len(tokens[2]) || bytes.Compare(tokens[1], tokens[2]) >= 0 {
		t.Errorf("the second token %s is not larger than the first, %s", tokens[2], tokens[1])
	}
	if state, err := srv.Do("GET", "{order:42}"); err != nil || state != "billed" {
		t.Errorf("the order is %v: %v", state, err)
	}
}
