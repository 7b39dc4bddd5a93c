package rueidisstore_test

import (
	"go/format"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/fatal"
)

const twin = "../valkeystore"

// names are what is called otherwise in valkey-go, which began as a copy of rueidis.
var names = strings.NewReplacer("rueidisstore", "valkeystore",
	"github.com/redis/rueidis", "github.com/valkey-io/valkey-go",
	"IsRedisNil", "IsValkeyNil", "IsRedisErr", "IsValkeyErr",
	"RedisResult", "ValkeyResult", "RedisMessage", "ValkeyMessage")

// identifier is a name of package rueidis; what is left is prose.
var identifier = regexp.MustCompile(`\brueidis\.`)

// TestTwin compares the sources of valkeystore with what this package says in the words of
// valkey-go. UPDATE_TWIN=1 writes them.
func TestTwin(t *testing.T) {
	want := sources(t, ".")
	for _, file := range want {
		source, err := os.ReadFile(file)
		fatal.If(t, err)
		text := names.Replace(strings.ReplaceAll(string(source), "\r\n", "\n"))
		text = strings.ReplaceAll(identifier.ReplaceAllString(text, "valkey."), "rueidis", "valkey-go")
		made, err := format.Source([]byte("// Code generated from rueidisstore by TestTwin there; DO NOT EDIT.\n\n" + text))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		at := filepath.Join(twin, file)
		if os.Getenv("UPDATE_TWIN") != "" {
			fatal.If(t, os.WriteFile(at, made, 0o644))
		}
		if has, err := os.ReadFile(at); err != nil || strings.ReplaceAll(string(has), "\r\n", "\n") != string(made) {
			t.Errorf("%s is not what this package says (run UPDATE_TWIN=1 go test -run TestTwin ./rueidisstore): %v",
				at, err)
		}
	}
	if has := sources(t, twin); !slices.Equal(has, want) {
		t.Errorf("%s has the sources %q, want %q", twin, has, want)
	}
}

// sources returns the names of the Go files in a directory, but for tests.
func sources(t *testing.T, dir string) (names []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	fatal.If(t, err)
	for _, path := range paths {
		if !strings.HasSuffix(path, "_test.go") {
			names = append(names, filepath.Base(path))
		}
	}
	return names
}
