//go:build unix

package main

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// The same line works at whatever is behind the URL, also after its master died.
func TestRunAtManyServers(t *testing.T) {
	if os.Getenv("HOLDFAST_CHECK") != "1" {
		t.Skip("several servers and some time: only with HOLDFAST_CHECK=1")
	}
	for name, start := range map[string]func(*testing.T) (url string, kill func()){
		"sentinel": func(t *testing.T) (string, func()) {
			rig := redisserver.StartSentinel(t)
			return "redis+sentinel://" + strings.Join(rig.Addrs(), ",") + "/" + rig.Name(), func() {
				master := rig.NextMaster(rig.KillMaster())
				for _, sentinel := range rig.Sentinels() { // most say so; whoever asks may ask the one that does not yet
					port := strconv.Itoa(master.Port())
					until(t, "a sentinel names the new master", func() bool {
						answer, _ := sentinel.Do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", rig.Name())
						at, _ := answer.([]any)
						return len(at) == 2 && at[1] == port
					})
				}
			}
		},
		"cluster": func(t *testing.T) (string, func()) {
			rig := redisserver.StartCluster(t)
			slot := rig.Slot("holdfast:{n}")
			return "redis+cluster://" + strings.Join(rig.Addrs(), ","), func() { rig.NextMaster(slot, rig.KillMaster(slot)); rig.Settled() }
		},
	} {
		t.Run(name, func(t *testing.T) {
			url, kill := start(t)
			for _, when := range []string{"at first", "after the master died"} {
				cmd, said := program(t, nil, "run", "-w", "20", "n", "--", "sh", "-c", `echo "$HOLDFAST_REDIS" "$HOLDFAST_NAME" "${HOLDFAST_TOKEN:?}"; exit 7`)
				cmd.Env = append(cmd.Env, "REDIS_URL="+url)
				var out bytes.Buffer
				cmd.Stdout = &out
				_ = cmd.Run()
				if code := cmd.ProcessState.ExitCode(); code != 7 || !strings.HasPrefix(out.String(), url+" n ") {
					t.Errorf("%s: exit code %d, %q, %s", when, code, out.String(), said)
				}
				kill()
				kill = func() {}
			}
		})
	}
}
