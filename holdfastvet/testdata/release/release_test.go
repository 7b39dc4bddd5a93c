package release

import (
	"testing"

	"github.com/holdfast-go/holdfast"
)

func TestIsLeftOut(t *testing.T) {
	var m *holdfast.Mutex
	_, _ = m.TryLock(t.Context())
}
