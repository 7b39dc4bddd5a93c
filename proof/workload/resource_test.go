package workload

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/proof/history"
	"github.com/holdfast-go/holdfast/proof/judge"
)

func TestResource(t *testing.T) {
	r, err := NewResource()
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
		name         string
		write        bool
		token, value int64 // to write, or to be read; a value below 0 is to be read by one who shares
		want         history.Result
	}{
		{"read", false, 5, 0, history.OK},
		{"write", true, 5, 1, history.OK},
		{"the next reads", false, 6, 1, history.OK},
		{"the first is late", true, 5, 2, history.Refused},
		{"and may not read either", false, 5, 0, history.Refused},
		{"the next writes", true, 6, 2, history.OK},
		{"from an old reading", true, 6, 2, history.LostUpdate},
		{"one who shares reads", false, 8, -2, history.OK},
		{"another does", false, 7, -2, history.OK},
		{"one who wrote before is late", true, 7, 3, history.Refused},
	} {
		got := history.Refused
		var value int64
		if step.write {
			got, err = s.write("n", step.token, step.value)
		} else {
			var ok bool
			if value, ok, err = s.read("n", step.token, step.value < 0); ok {
				got = history.OK
			}
			if value != max(step.value, -step.value) {
				t.Errorf("%s: read %d, want %d", step.name, value, step.value)
			}
		}
		if got != step.want || err != nil {
			t.Errorf("%s: %s, error %v; want %s", step.name, got, err, step.want)
		}
	}
	if got, want := r.Count(), (judge.Accesses{Writes: 3, Reads: 4, Late: 3, Spoiled: 0, Lost: 1}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}

func TestResourceMutes(t *testing.T) {
	r, err := NewResource()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	s, err := dialResource(r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if err := s.askSilence(1, time.Second); err != nil {
		t.Errorf("nobody to mute: %v", err)
	}
	var slot int
	r.setMute(func(s int, _ time.Duration) { slot = s })
	if err := s.askSilence(3, time.Second); err != nil || slot != 3 {
		t.Errorf("muted slot %d, error %v", slot, err)
	}
}
