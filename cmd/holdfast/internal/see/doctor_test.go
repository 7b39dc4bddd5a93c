package see

import (
	"os"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/doctor"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// On a terminal the texts of a finding fit.
func TestDoctorLinesFit(t *testing.T) {
	f := doctor.Finding{Level: doctor.Danger, Check: "eviction", Server: "10.0.0.1:6379",
		Found: "one two three four five six seven eight nine ten",
		Means: "eleven twelve thirteen fourteen fifteen", Change: "sixteen seventeen eighteen nineteen twenty"}
	room := roomForFindings(doctor.Report{Findings: []doctor.Finding{f}}, 80)
	if want := 80 - len("unknown  eviction  10.0.0.1:6379  "); room != want {
		t.Errorf("room for %d columns, want %d", room, want)
	}
	got := strings.Join(linesOf(f, 30), "\n")
	const want = "one two three four five six\n  seven eight nine ten\n  means: eleven twelve\n    thirteen fourteen fifteen\n  change: " +
		"sixteen seventeen\n    eighteen nineteen twenty"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if n := len(linesOf(f, 0)); n != 3 {
		t.Errorf("without a terminal there are %d lines", n)
	}
	if room := roomForFindings(doctor.Report{Findings: []doctor.Finding{f}}, 20); room != 40 {
		t.Errorf("on a narrow terminal there is room for %d columns", room)
	}
}
