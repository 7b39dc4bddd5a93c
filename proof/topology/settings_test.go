package topology_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// A server starts with all settings that docs/topologies.md names, and knows each of them.
func TestServerTakesTheSettingsOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/topologies.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n## Settings of the server\n")
	text, _, _ = strings.Cut(text, "\n## ")
	var values [][]string
	for _, row := range regexp.MustCompile("(?m)^\\| (no )?(`[^|]*`)[^|]*\\|").FindAllStringSubmatch(text, -1) {
		for _, setting := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[2], -1) {
			if words := strings.Fields(setting[1]); len(words) == 2 && row[1] == "" {
				values = append(values, words)
			}
		}
	}
	if len(values) < 5 {
		t.Fatalf("docs/topologies.md names only %q", values)
	}
	options := []string{"--cluster-enabled", "yes"}
	for _, setting := range values {
		options = append(options, "--"+setting[0], setting[1])
	}
	server := redisserver.Start(t, options...)
	for _, setting := range values {
		got, err := server.Do("CONFIG", "GET", setting[0])
		if list, ok := got.([]any); !ok || !slices.Equal(list, []any{setting[0], setting[1]}) {
			t.Errorf("the server has %v for %v: %v", got, setting, err)
		}
	}
}
