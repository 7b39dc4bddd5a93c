// Package fatal ends a test at an error that must not be.
package fatal

// A Test is a *testing.T, or what ends a test as that does.
type Test interface {
	Helper()
	Fatal(args ...any)
}

// If ends the test if there is an error.
func If(t Test, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
