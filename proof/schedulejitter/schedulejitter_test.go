package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

func TestRewrite(t *testing.T) {
	const source = `// Package p is one.
package p

import "sync"

type t struct{ mu sync.Mutex }

func (s *t) get() int { return 1 }

func (s *t) do(c chan int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	go func() { c <- 1 }()
	if s == nil { s.mu.Unlock() }
	select {
	case <-c:
		s.mu.Unlock() // so
	default:
	}
}

func (s *t) Do(ctx context.Context, all []native.Request) []native.Reply {
	s.get()
	return nil
}
`
	const want = `// Package p is one.
package p; import pause_ "` + pausePath + `"

import "sync"

type t struct{ mu sync.Mutex }

func (s *t) get() int { return 1 }

func (s *t) do(c chan int) { pause_.Here(7);
	s.mu.Lock()
	defer s.mu.Unlock()
	go func() { pause_.Here(8); c <- 1 }()
	if s == nil { s.mu.Unlock(); pause_.Here(9) }
	select {
	case <-c: pause_.Here(10);
		s.mu.Unlock(); pause_.Here(11) // so
	default: pause_.Here(12);
	}
}

func (s *t) Do(ctx context.Context, all []native.Request) []native.Reply { pause_.Server(); defer pause_.Server();
	s.get()
	return nil
}
`
	got, places, err := rewrite("p.go", []byte(source), 7)
	if err != nil || places != 7 || string(got) != want {
		t.Errorf("%d places, error %v, got\n%s", places, err, got)
	}
	if got, places, err := rewrite("p.go", []byte("package p\n"), 0); err != nil || places != 0 || got != nil {
		t.Errorf("of nothing: %d places, error %v, got %q", places, err, got)
	}
}

// planted is the package with a mistake.
var planted = filepath.Join("proof", "schedulejitter", "testdata", "planted")

func jitter(t *testing.T, pack, test string, runs int) (string, error) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skipf("goroutines are held up on linux only, and this is %s", runtime.GOOS)
	}
	var said bytes.Buffer
	err := request{root: filepath.Join("..", ".."), pack: pack, test: test, seed: 1, runs: runs}.run(t.Context(), &said)
	return said.String(), err
}

func TestAMistakeIsFound(t *testing.T) {
	said, err := jitter(t, planted, "TestOrder", 60)
	if err == nil || !strings.Contains(err.Error(), "of 60 runs failed, with seeds ") || !strings.Contains(said, "[second first]") {
		t.Errorf("error %v, said\n%s", err, said)
	}
}

func TestACorrectTestPasses(t *testing.T) {
	said, err := jitter(t, planted, "TestNothing", 2)
	if err != nil || !strings.HasPrefix(said, "seed 1: passed") || strings.Count(said, "\n") != 2 {
		t.Errorf("error %v, said\n%s", err, said)
	}
}

func TestAPackageThatCannotBeRun(t *testing.T) {
	for _, test := range []struct{ pack, test, says string }{
		{"docs", "", "docs: exit status 1\n"},
		{filepath.Join("internal", "testing", "lateness"), "", "has no tests"},
		{planted, "TestSomething", `has no test "TestSomething"`},
	} {
		if _, err := jitter(t, test.pack, test.test, 1); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s %s: error %v, want one with %q", test.pack, test.test, err, test.says)
		}
	}
}
