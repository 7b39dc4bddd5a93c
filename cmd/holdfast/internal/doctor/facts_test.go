package doctor

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// wantOne checks that a check made one finding, of a level and with a text.
func wantOne(t *testing.T, name string, p *serverCheck, level Level, text string) {
	t.Helper()
	if len(p.findings) != 1 || p.findings[0].Level != level || !strings.Contains(p.findings[0].Found, text) {
		t.Errorf("%s: %+v, want %s with %q", name, p.findings, level, text)
	}
}

func TestVersions(t *testing.T) {
	for text, level := range map[string]Level{
		"redis_version:5.0.14":                          Danger,
		"redis_version:6.0.20":                          Danger,
		"redis_version:6.2.0":                           Note,
		"redis_version:6.2.19":                          Note,
		"redis_version:6.2.20":                          OK,
		"redis_version:7.0.15":                          Note, // no release of 7.0 has the repair
		"redis_version:7.2.11":                          OK,
		"redis_version:8.2.1":                           Note,
		"redis_version:8.2.2":                           OK,
		"redis_version:8.4.0":                           OK,
		"redis_version:7.2.4\nvalkey_version:8.1.3":     Note,
		"redis_version:7.2.4\nvalkey_version:8.1.4":     Note,
		"redis_version:7.2.4\nvalkey_version:8.1.6":     OK,
		"redis_version:7.2.4\nvalkey_version:9.0.0-rc1": Note,
		"redis_version:7.2.4\nvalkey_version:9.0.2":     OK,
		"redis_version:7.2.4\nvalkey_version:9.1.1":     Note,
		"redis_version:7.2.4\nvalkey_version:9.1.2":     OK,
		"redis_version:unstable":                        Note,
		"":                                              Unknown,
	} {
		p := &serverCheck{name: "s", info: infoText{}}
		p.info.read(text)
		p.version()
		wantOne(t, text, p, level, "")
	}
}

// What the doctor takes for enough is what docs/topologies.md says, and proof/clock tests that.
func TestTTLOfTheTable(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/topologies.md")
	if err != nil {
		t.Fatal(err)
	}
	const grace = 5 * time.Second
	rows := regexp.MustCompile(`(?m)^\| (\d+) s \| (\d+) s \| (\d+) s \|$`).FindAllStringSubmatch(string(page), -1)
	if len(rows) < 5 {
		t.Fatalf("the table has %d rows", len(rows))
	}
	for _, row := range rows {
		outage, _ := time.ParseDuration(row[1] + "s")
		for cell, want := range map[string]time.Duration{row[2]: neededTTL(outage), row[3]: neededTTL(outage + grace)} {
			if ttl, _ := time.ParseDuration(cell + "s"); ttl != want || livesThrough(ttl) < outage {
				t.Errorf("an outage of %v: the table says %v, the doctor %v, and it lives through %v", outage, ttl, want,
					livesThrough(ttl))
			}
		}
	}
}

func TestFailover(t *testing.T) {
	for name, c := range map[string]struct {
		value  string
		err    error
		factor float64
		ttl    time.Duration
		level  Level
		words  string
	}{
		"of Sentinel, as it begins": {"30000", nil, 1, 15 * time.Second, Note,
			"up to 32s, and a lease of 15s lives through 8.1s"},
		"shorter than the TTL":        {"10000", nil, 1, 15 * time.Second, Note, "up to 12s"},
		"with the TTL that it says":   {"30000", nil, 1, 54 * time.Second, OK, "lives through 32.5s"},
		"of Sentinel, quick":          {"5000", nil, 1, 15 * time.Second, OK, "up to 7s"},
		"of a cluster, as it begins":  {"15000", nil, 1.5, 15 * time.Second, Note, "up to 24.5s"},
		"of a cluster, with that TTL": {"15000", nil, 1.5, 42 * time.Second, OK, "lives through 25s"},
		"a TTL for no outage":         {"1", nil, 1, time.Second, Note, "lives through 0s"},
		"refused":                     {"", errors.New("NOPERM"), 1, 15 * time.Second, Note, "is not told: NOPERM"},
		"no number":                   {"soon", nil, 1, 15 * time.Second, Note, "is not told: "},
	} {
		p := &serverCheck{name: "s", ttl: c.ttl}
		p.failover("setting", c.value, c.err, c.factor)
		wantOne(t, name, p, c.level, c.words)
	}
}

// makeReadings are answers, each sent so long after the first, and answered after trip. ahead is
// what the server's clock is ahead then.
func makeReadings(trip time.Duration, ahead func(at time.Duration) time.Duration) (c clockReadings) {
	began := time.Now()
	for at := time.Duration(0); at <= 2*time.Second; at += 100 * time.Millisecond {
		sent := began.Add(at)
		c = append(c, clockReading{sent, sent.Add(trip), sent.Add(trip/2 + ahead(at))})
	}
	return c
}

func TestClock(t *testing.T) {
	steps := func(at, by time.Duration) func(time.Duration) time.Duration {
		return func(now time.Duration) time.Duration {
			if now < at {
				return 0
			}
			return by
		}
	}
	runs := func(rate float64) func(time.Duration) time.Duration {
		return func(now time.Duration) time.Duration { return time.Duration(rate * float64(now)) }
	}
	always := func(by time.Duration) func(time.Duration) time.Duration {
		return func(time.Duration) time.Duration { return by }
	}
	for name, c := range map[string]struct {
		readings clockReadings
		level    Level
		found    string
	}{
		"right":           {makeReadings(time.Millisecond, always(0)), OK, "no steps, rate right"},
		"an hour ahead":   {makeReadings(time.Millisecond, always(time.Hour)), Note, "1h0m0s beside"},
		"a minute behind": {makeReadings(time.Millisecond, always(-time.Minute)), Note, "-1m0s beside"},
		"step forward": {makeReadings(time.Millisecond, steps(time.Second, time.Minute)), Danger,
			"stepped by 59.999s"},
		"step back": {makeReadings(time.Millisecond, steps(time.Second, -300*time.Millisecond)), Danger,
			"stepped by -299ms"},
		"late answers": {makeReadings(time.Second, steps(time.Second, 200*time.Millisecond)), OK, "no steps"},
		"fast":         {makeReadings(time.Millisecond, runs(0.02)), Danger, "runs +1.9 %"},
		"slow":         {makeReadings(time.Millisecond, runs(-0.02)), Danger, "runs -1.9 %"},
		"nearly right": {makeReadings(time.Millisecond, runs(0.005)), OK, "rate right within 1 %"},
		"one answer":   {makeReadings(time.Millisecond, always(0))[:1], Note, "too short"},
	} {
		p := &serverCheck{name: "s", clock: c.readings}
		p.time()
		wantOne(t, name, p, c.level, c.found)
	}
}

func TestRoundTrips(t *testing.T) {
	for trip, level := range map[time.Duration]Level{time.Millisecond: OK, 300 * time.Millisecond: Note} {
		p := &serverCheck{name: "s", clock: makeReadings(trip, func(time.Duration) time.Duration { return 0 })}
		p.roundTrips()
		wantOne(t, "round trips", p, level, "p50 "+trip.String())
	}
}

func TestDenies(t *testing.T) {
	for line, want := range map[string]bool{
		"NOPERM this user has no permissions to run the 'get' command or its subcommand":        true,
		"NOPERM User u has no permissions to run the 'get' command":                             true,
		"ERR unknown command 'CONFIG', with args beginning with: 'GET'":                         true,
		"ERR The user executing the script can't run this command or subcommand script: 0f":     true,
		"ERR ACL failure in script: User u has no permissions to run the 'hset' command script": true,
		"NOSCRIPT No matching script. Please use EVAL.":                                         false,
		"WRONGTYPE Operation against a key holding the wrong kind of value":                     false,
		"OOM command not allowed when used memory > 'maxmemory'.":                               false,
		"READONLY You can't write against a read only replica.":                                 false,
		"ok": false,
	} {
		if isDenial(line) != want {
			t.Errorf("%q: %v", line, !want)
		}
	}
}
