package moving

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// compileBill compiles the service and the job in Java, and returns their class path.
func compileBill(t *testing.T) (classes string) {
	t.Helper()
	out := t.TempDir()
	for _, program := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("no %s (Debian: default-jdk-headless and maven): %v", program, err)
		}
	}
	mvn := exec.Command("mvn", "-q", "-B", "-f", "redisson/pom.xml", "-Dout="+out, "compile",
		"dependency:copy-dependencies")
	if text, err := mvn.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return filepath.Join(out, "classes") + string(filepath.ListSeparator) + filepath.Join(out, "dependency", "*")
}

// gatherRedisson makes a fleet of services and jobs in Java that move from Redisson. Release N-1 is
// a service. Release N is the same code as a job under holdfast run. Release N+1 is a job without
// Redisson.
func gatherRedisson(t *testing.T, classes string) (f *fleet, start func(release string) *member) {
	t.Helper()
	f = gatherCommands(t)
	f.often = 1 // a job takes the seconds that Java takes to start
	java := func(how string, p plan) []string {
		return []string{"java", "-cp", classes, "-XX:TieredStopAtLevel=1", "Bill", how, p.Redis, p.Section, p.Worker,
			p.Release}
	}
	f.command = func(p plan, work []string) []string {
		if p.Release == between {
			return f.under(java("once", p))
		}
		return f.under(work)
	}
	return f, func(release string) *member {
		if release != before {
			return f.loop(release)
		}
		p := f.next(release)
		return f.serve(p, java("service", p)...)
	}
}

func TestRedisson(t *testing.T) {
	long(t)
	classes := compileBill(t)
	// Services with Redisson are replaced one by one, as the page says, and back again.
	t.Run("rolling", func(t *testing.T) {
		t.Parallel()
		f, start := gatherRedisson(t, classes)
		f.roll(2, start)
	})
	// A job of release N is killed under both locks, after more than both TTLs. Java ends with
	// holdfast run, and the others get in when its locks have expired.
	t.Run("killed under both locks", func(t *testing.T) {
		t.Parallel()
		f, start := gatherRedisson(t, classes)
		f.trap("1", bothHeld)
		victim, _ := f.once(between)
		f.await("the victim works", f.isTrapped)
		rival, next := start(before), f.loop(between)
		<-time.After(oldTTL + newTTL)
		f.staysOut(rival, next)
		f.killed(victim)
	})
}
