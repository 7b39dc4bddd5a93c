package leak

import (
	"strings"
	"testing"
	"time"
)

func TestCheck(t *testing.T) {
	const here = "created by github.com/holdfast-go/holdfast/proof/leak.TestCheck"
	release := make(chan struct{})
	done := make(chan struct{})
	go lingering(release, done)
	// The test runner's own goroutine is always there, so the message is what counts.
	seen := func() bool {
		err := Check(0)
		return err != nil && strings.Contains(err.Error(), here)
	}
	if !seen() {
		t.Error("a waiting goroutine was not seen")
	}
	close(release)
	<-done
	for late := time.Now().Add(30 * time.Second); seen(); { // until it has ended
		if time.Now().After(late) {
			t.Fatal("a goroutine that ended was seen")
		}
	}
}

func lingering(release <-chan struct{}, done chan<- struct{}) {
	<-release
	close(done)
}
