package holdfasttest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A test that passes prints nothing but that: no line of go-redis about connections that fail. Its
// logger is one for all clients of the process, and is left as it was.
func TestPassingTestsAreQuiet(t *testing.T) {
	if os.Getenv("HOLDFASTTEST_CHILD") != "" {
		t.Skip("it is the child")
	}
	child := exec.Command(os.Args[0], "-test.run", "TestSilence|TestDisconnect|TestNew|TestLose|TestSlow|TestExport",
		"-test.count", "3")
	child.Env = append(os.Environ(), "HOLDFASTTEST_CHILD=1")
	out, err := child.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if text := strings.TrimSpace(string(out)); text != "PASS" {
		t.Errorf("the tests pass, and print %d lines, such as: %.500s", strings.Count(text, "\n"), text)
	}
}
