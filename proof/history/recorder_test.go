package history

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLoad(t *testing.T) {
	whole := `{"at":1,"p":"a","ev":"stop"}` + "\n"
	for _, c := range []struct {
		name, data string
		records    int
		bad        bool
	}{
		{"empty", "", 0, false},
		{"whole", whole + whole, 2, false},
		{"killed in the middle of a line", whole + `{"at":2,"p":"a","e`, 1, false},
		{"broken inside", whole + "{\n" + whole, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "a"+suffix), []byte(c.data), 0o600); err != nil {
				t.Fatal(err)
			}
			records, err := Load(dir)
			if len(records) != c.records || (err != nil) != c.bad {
				t.Errorf("%d records, error %v", len(records), err)
			}
		})
	}
}
