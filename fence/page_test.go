package fence

import (
	"os"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
)

// docs/fencing.md shows the statements for those who send them without this package.
func TestPageShowsTheStatements(t *testing.T) {
	text, err := os.ReadFile("../docs/fencing.md")
	if err != nil {
		t.Fatal(err)
	}
	page := strings.ReplaceAll(string(text), "\r\n", "\n")
	shown := []string{dialects[PostgreSQL].schema}
	for _, s := range dialects {
		shown = append(shown, s.raise)
		if s.read != "" {
			shown = append(shown, s.read)
		}
	}
	for _, statement := range shown {
		if !strings.Contains(page, "```sql\n"+statement+"\n```") {
			t.Errorf("docs/fencing.md does not show\n%s", statement)
		}
	}
	if n := strings.Count(page, "```sql\n"); n != len(shown) {
		t.Errorf("docs/fencing.md shows %d statements, and there are %d", n, len(shown))
	}
}

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }
