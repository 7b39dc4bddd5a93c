package workload

import (
	"os"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/proof/history"
	"github.com/holdfast-go/holdfast/proof/judge"
)

// TestMain fails when a goroutine is left behind (trap 33).
func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// Workers reach the storage, whose rules judge.Storage has, and ask for silence, by a connection.
func TestResource(t *testing.T) {
	var slot int
	r, err := NewResource(func(s int, _ time.Duration) { slot = s })
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	s, err := dialResource(r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	for _, step := range []struct {
		token, value int64
		want         history.Result
	}{{5, 1, history.OK}, {6, 2, history.OK}, {5, 9, history.Refused}, {6, 2, history.LostUpdate}} {
		if got, err := s.write("n", step.token, step.value); got != step.want || err != nil {
			t.Errorf("token %d writes %d: %s, %v; want %s", step.token, step.value, got, err, step.want)
		}
	}
	for _, token := range []int64{8, 7} { // readers do not refuse one another
		if value, ok, err := s.read("n", token, true); value != 2 || !ok || err != nil {
			t.Errorf("token %d reads %d, %v, %v", token, value, ok, err)
		}
	}
	if got, want := r.Count(), (judge.Accesses{Writes: 3, Reads: 2, Late: 1, Spoiled: 1, Lost: 1}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	if err := s.askSilence(3, time.Second); err != nil || slot != 3 {
		t.Errorf("muted slot %d, error %v", slot, err)
	}
}
