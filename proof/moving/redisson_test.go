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

// redissonShop has services and jobs in Java that move from Redisson. Release N-1 is a service.
// Release N is the same code as a job under holdfast run. Release N+1 is a job without Redisson.
func redissonShop(t *testing.T, classes string) (s *shop, start func(release string) *member) {
	t.Helper()
	s = openShop(t)
	java := func(how string, p plan) []string {
		return []string{"java", "-cp", classes, "-XX:TieredStopAtLevel=1", "Bill", how, p.Redis, p.Section, p.Worker,
			p.Release}
	}
	s.command = func(p plan, work []string) []string {
		if p.Release == between {
			return s.under(java("once", p))
		}
		return s.under(work)
	}
	return s, func(release string) *member {
		if release != before {
			return s.loop(release)
		}
		p := s.next(release)
		argv := java("service", p)
		return s.serve(p, exec.Command(argv[0], argv[1:]...))
	}
}

func TestRedisson(t *testing.T) {
	long(t)
	classes := compileBill(t)
	t.Run("rolling", func(t *testing.T) { t.Parallel(); testRedissonRolling(t, classes) })
	t.Run("killed under both locks", func(t *testing.T) { t.Parallel(); testRedissonKilled(t, classes) })
}

// Services with Redisson are replaced one by one, as the page says, and back again.
func testRedissonRolling(t *testing.T, classes string) {
	t.Helper()
	s, start := redissonShop(t, classes)
	s.often = 1 // a job takes the seconds that Java takes to start
	s.roll(2, start)
}

// A job of release N is killed under both locks, after more than both TTLs. Java ends with holdfast
// run, and the others get in when its locks have expired.
func testRedissonKilled(t *testing.T, classes string) {
	t.Helper()
	s, start := redissonShop(t, classes)
	s.often = 1
	reached := s.trap("1", bothHeld)
	victim, _ := s.once(between)
	s.reaches("the victim works", reached)
	rival, next := start(before), s.loop(between)
	<-time.After(oldTTL + newTTL)
	if s.visitsOf(rival)+s.visitsOf(next) > 0 {
		t.Error("others were inside meanwhile")
	}
	killed := time.Now()
	s.end(victim, true)
	s.goesOn()
	s.isExclusive(t)
	t.Logf("killed while it worked: both others were inside %v later; overlaps: %d",
		time.Since(killed).Round(100*time.Millisecond), s.overlapped())
}
