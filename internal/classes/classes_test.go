package classes

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// A class of each name would be a series of each name.
func TestClassesAreBounded(t *testing.T) {
	c := New(func(name string) string { return name }, slog.Default())
	seen := map[string]bool{}
	for i := range 10000 {
		seen[c.Of(fmt.Sprint(i))] = true
	}
	if len(seen) != maxClasses+1 || !seen[otherClass] || c.Of("7") != "7" {
		t.Errorf("%d classes, with other: %t", len(seen), seen[otherClass])
	}
	if none := New(nil, slog.Default()); none.Of("x") != "" {
		t.Error("without a function there is a class")
	}
}

// Another client chose the name (trap 27): a panic of Config.Class is logged once, and a class is
// valid UTF-8.
func TestClassOfForeignName(t *testing.T) {
	log := &bytes.Buffer{}
	c := New(func(name string) string { return name[:strings.IndexByte(name, ':')] },
		slog.New(slog.NewTextHandler(log, nil)))
	for name, want := range map[string]string{
		"no colon": "", "none either": "", "\xff\xfe:1": "\uFFFD", "order:42": "order"} {
		if got := c.Of(name); got != want {
			t.Errorf("the class of %q is %q, want %q", name, got, want)
		}
	}
	if n := strings.Count(log.String(), "Config.Class panicked"); n != 1 {
		t.Errorf("the panic was logged %d times, want once: %s", n, log)
	}
}
