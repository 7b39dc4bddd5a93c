package dashboard

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// The fields of a name are those that docs/json.md tells of.
func TestFieldsAreThoseOfTheContract(t *testing.T) {
	contract, err := os.ReadFile("../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []any{lock{}, hold{}, waiter{}, master{}} {
		for _, field := range reflect.VisibleFields(reflect.TypeOf(of)) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name != "" && !strings.Contains(string(contract), "`"+name+"`") {
				t.Errorf("docs/json.md does not tell of %s of %T", name, of)
			}
		}
	}
}
