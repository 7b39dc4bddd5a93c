package topology_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// A server starts with all settings that docs/topologies.md names, and knows each of them.
func TestServerTakesTheSettingsOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/topologies.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n## Settings of the server\n")
	text, _, _ = strings.Cut(text, "\n## ")
	options, want := []string{"--cluster-enabled", "yes"}, [][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*`)[^|]*\\|").FindAllStringSubmatch(text, -1) {
		for _, setting := range regexp.MustCompile("`([^` ]+) ([^` ]+)`").FindAllStringSubmatch(row[1], -1) {
			want = append(want, setting[1:])
			options = append(options, "--"+setting[1], setting[2])
		}
	}
	if len(want) < 5 {
		t.Fatalf("docs/topologies.md names only %q", want)
	}
	server := redisserver.Start(t, options...)
	for _, setting := range want {
		if got := harness.Must(t, server, "CONFIG", "GET", setting[0]); !slices.Equal(got.([]any),
			[]any{setting[0], setting[1]}) {
			t.Errorf("the server has %v for %v", got, setting)
		}
	}
}

// TestMain fails when a goroutine is left behind (trap 33).
func TestMain(m *testing.M) {
	harness.Quiet()
	os.Exit(leak.Main(m))
}
