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
	if err := Check(0); err == nil || !strings.Contains(err.Error(), here) {
		t.Errorf("a waiting goroutine was not seen: %v", err)
	}
	close(release)
	<-done
	if err := Check(time.Second); err != nil && strings.Contains(err.Error(), here) {
		t.Errorf("a goroutine that ended was seen: %v", err)
	}
}

func lingering(release <-chan struct{}, done chan<- struct{}) {
	<-release
	close(done)
}
