package holdfast

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// A class of each name would be a series of each name.
func TestClassesAreBounded(t *testing.T) {
	c := newClasses(func(name string) string { return name }, slog.Default())
	seen := map[string]bool{}
	for i := range 10000 {
		seen[c.class(fmt.Sprint(i))] = true
	}
	if len(seen) != mostClasses+1 || !seen[otherClass] || c.class("7") != "7" {
		t.Errorf("%d classes, with other: %t", len(seen), seen[otherClass])
	}
	if none := newClasses(nil, slog.Default()); none.class("x") != "" {
		t.Error("without a function there is a class")
	}
}

// Another client chose the name (trap 27): Inspect and List go on where Config.Class panics, which
// is logged once, and a class is valid UTF-8.
func TestClassOfForeignName(t *testing.T) {
	server, log := memory.New(protocol.Features{Queue: true, Tokens: true}), &bytes.Buffer{}
	other, err := NewOn(server.Connect("p"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	client, err := NewOn(server.Connect("p"), &Config{
		Class:  func(name string) string { return name[:strings.IndexByte(name, ':')] },
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"no colon": "", "none either": "", "\xff\xfe:1": "\uFFFD", "order:42": "order"}
	for name := range want {
		if _, err := other.Mutex(name, WithTTL(time.Minute)).Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := client.Inspect(t.Context(), "no colon"); err != nil || info.State() != lockinfo.StateHeld {
		t.Errorf("Inspect says %v, %v", info, err)
	}
	got := map[string]string{}
	for info, err := range client.List(t.Context(), ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		got[info.Name] = info.Class
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the classes are %q, want %q", got, want)
	}
	if err := client.Close(); err != nil { // the log is written
		t.Error(err)
	}
	if n := strings.Count(log.String(), "Config.Class panicked"); n != 1 {
		t.Errorf("the panic was logged %d times, want once: %s", n, log)
	}
}
