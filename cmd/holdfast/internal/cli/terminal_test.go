package cli

import (
	"os"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

func TestWrapped(t *testing.T) {
	const text = "one two three\nfour\n\n  a b c d e f g h i j\n\nEnd:\n  as it is, as it is"
	const want = "one two\nthree four\n\n  a b c d e f g h i j\n\nEnd:\n  as it is, as it is"
	if got := Wrap(text, 10); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
