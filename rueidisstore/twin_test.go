package rueidisstore_test

import (
	"go/format"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const twin = "../valkeystore"

// names are what is called otherwise in valkey-go, which began as a copy of rueidis.
var names = strings.NewReplacer("rueidisstore", "valkeystore", "github.com/redis/rueidis", "github.com/valkey-io/valkey-go",
	"IsRedisNil", "IsValkeyNil", "IsRedisErr", "IsValkeyErr", "RedisResult", "ValkeyResult", "RedisMessage", "ValkeyMessage")

// identifier is a name of package rueidis; what is left is prose.
var identifier = regexp.MustCompile(`\brueidis\.`)

// TestTwin compares valkeystore with what this package says in the words of valkey-go: both are
// kept here. UPDATE_TWIN=1 writes it.
func TestTwin(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, file := range files {
		if file == "twin_test.go" {
			continue
		}
		want[file] = true
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := names.Replace(strings.ReplaceAll(string(source), "\r\n", "\n"))
		text = strings.ReplaceAll(identifier.ReplaceAllString(text, "valkey."), "rueidis", "valkey-go")
		made, err := format.Source([]byte("// Code generated from rueidisstore by TestTwin there; DO NOT EDIT.\n\n" + text))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		at := filepath.Join(twin, file)
		if os.Getenv("UPDATE_TWIN") != "" {
			if err := os.WriteFile(at, made, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if has, err := os.ReadFile(at); err != nil || strings.ReplaceAll(string(has), "\r\n", "\n") != string(made) {
			t.Errorf("%s is not what this package says (run UPDATE_TWIN=1 go test -run TestTwin ./rueidisstore): %v", at, err)
		}
	}
	twins, err := filepath.Glob(filepath.Join(twin, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range twins {
		if !want[filepath.Base(at)] {
			t.Errorf("%s has no original", at)
		}
	}
}
