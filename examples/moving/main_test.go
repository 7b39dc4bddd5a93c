package moving

import (
	"os"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/redisstore"
)

// TestMain fails when a goroutine is left behind.
func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// connect makes a client of holdfast on the server at addr.
func connect(t *testing.T, addr string) *holdfast.Client {
	t.Helper()
	client, err := holdfast.New(redisstore.New(open(t, addr)), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}
