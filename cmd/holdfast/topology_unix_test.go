//go:build unix

package main

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// One command line works with Sentinel and with Cluster, also after the death of the master. The
// test orders each fail-over: sentinels and nodes that wait for a time would, on a busy machine,
// also replace masters that only stand still.
func TestRunAtManyServers(t *testing.T) {
	if !measured() {
		t.Skip("several servers and some time: only with HOLDFAST_PROOF=1")
	}
	for name, start := range map[string]func(*testing.T) (url string, kill func()){
		"sentinel": func(t *testing.T) (string, func()) {
			rig := redisserver.StartSentinel(t)
			rig.Patient()
			port := func(sentinel *redisserver.Server) string { // of the master that it names
				answer, _ := sentinel.Do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", rig.Name())
				if at, _ := answer.([]any); len(at) == 2 {
					return at[1].(string)
				}
				return ""
			}
			return "redis+sentinel://" + strings.Join(rig.Addrs(), ",") + "/" + rig.Name(), func() {
				old := rig.KillMaster()
				until(t, "every sentinel names the new master", func() bool {
					if first := rig.Sentinels()[0]; port(first) == strconv.Itoa(old.Port()) {
						_, _ = first.Do("SENTINEL", "FAILOVER", rig.Name()) // refused while one is under way
					}
					master := rig.Master()
					return master != nil && master != old &&
						!slices.ContainsFunc(rig.Sentinels(), func(s *redisserver.Server) bool {
							return port(s) != strconv.Itoa(master.Port())
						})
				})
			}
		},
		"cluster": func(t *testing.T) (string, func()) {
			rig := redisserver.StartCluster(t)
			rig.Patient()
			slot := rig.Slot("holdfast:{n}")
			return "redis+cluster://" + strings.Join(rig.Addrs(), ","), func() {
				old := rig.KillMaster(slot)
				replica := rig.Servers()[3+slices.Index(rig.Servers(), old)]
				if _, err := replica.Do("CLUSTER", "FAILOVER", "TAKEOVER"); err != nil {
					t.Fatal(err)
				}
				rig.NextMaster(slot, old)
				rig.Settled()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			url, kill := start(t)
			for _, when := range []string{"at first", "after the master died"} {
				cmd, stderr := program(t, nil, "run", "-w", "20", "n", "--", "sh", "-c",
					`echo "$HOLDFAST_REDIS" "$HOLDFAST_NAME" "${HOLDFAST_TOKEN:?}"; exit 7`)
				cmd.Env = append(cmd.Env, "REDIS_URL="+url)
				var out bytes.Buffer
				cmd.Stdout = &out
				_ = cmd.Run()
				if code := cmd.ProcessState.ExitCode(); code != 7 || !strings.HasPrefix(out.String(), url+" n ") {
					t.Errorf("%s: exit code %d, %q, %s", when, code, out.String(), stderr)
				}
				kill()
				kill = func() {}
			}
		})
	}
}
