package holdfast

import (
	"fmt"
	"testing"
)

// A class of each name would be a series of each name.
func TestClassesAreBounded(t *testing.T) {
	c := newClasses(func(name string) string { return name })
	seen := map[string]bool{}
	for i := range 10000 {
		seen[c.class(fmt.Sprint(i))] = true
	}
	if len(seen) != mostClasses+1 || !seen[otherClass] || c.class("7") != "7" {
		t.Errorf("%d classes, with other: %t", len(seen), seen[otherClass])
	}
	if none := newClasses(nil); none.class("x") != "" {
		t.Error("without a function there is a class")
	}
}
