package scrape_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
	"github.com/holdfast-go/holdfast/telemetry"
)

// TestMain fails when a goroutine is left behind (trap 33).
func TestMain(m *testing.M) {
	harness.Quiet()
	os.Exit(leak.Main(m))
}

// start runs a process until the test is over, and returns what stands after a word in its output.
func start(t *testing.T, cmd *exec.Cmd, word string) string {
	t.Helper()
	output, input, err := os.Pipe()
	fatal.If(t, err)
	cmd.Stdout, cmd.Stderr = input, input
	fatal.If(t, cmd.Start())
	input.Close()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	said := ""
	for lines := bufio.NewScanner(output); lines.Scan(); said += lines.Text() + "\n" {
		if _, after, found := strings.Cut(lines.Text(), word); found {
			go func() { _, _ = io.Copy(io.Discard, output) }()
			return strings.TrimSpace(after)
		}
	}
	t.Fatalf("%s did not say %q, but:\n%s", cmd.Path, word, said)
	return ""
}

// getJSON reads a page that is JSON.
func getJSON(t *testing.T, address string, to any) {
	t.Helper()
	if err := json.Unmarshal(get(t, address), to); err != nil {
		t.Fatalf("%s: %v", address, err)
	}
}

// get asks for a page that there is.
func get(t *testing.T, address string) []byte {
	t.Helper()
	text, status := fetch(t, address)
	if status != http.StatusOK {
		t.Fatalf("%s: %d %s", address, status, text)
	}
	return text
}

func fetch(t *testing.T, address string) (text []byte, status int) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(address)
	fatal.If(t, err)
	defer response.Body.Close()
	text, err = io.ReadAll(response.Body)
	fatal.If(t, err)
	return text, response.StatusCode
}

// A server is a Prometheus.
type server struct {
	t   *testing.T
	url string
}

// ask returns the values of a query, by the labels of each.
func (s server) ask(query string) map[string]float64 {
	s.t.Helper()
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	getJSON(s.t, s.url+"/api/v1/query?query="+url.QueryEscape(query), &answer)
	out := map[string]float64{}
	for _, r := range answer.Data.Result {
		value, err := strconv.ParseFloat(fmt.Sprint(r.Value[1]), 64)
		fatal.If(s.t, err)
		out[fmt.Sprint(r.Metric)] = value
	}
	return out
}

func (s server) has(query string) bool {
	s.t.Helper()
	for _, value := range s.ask(query) {
		if !math.IsNaN(value) {
			return true
		}
	}
	return false
}

// scrape starts a Prometheus that scrapes a program, with the rules of deploy/.
func scrape(t *testing.T, target string) server {
	t.Helper()
	rules, err := filepath.Abs(filepath.Join(folder, "alerts.yml"))
	fatal.If(t, err)
	dir := t.TempDir()
	config := fmt.Sprintf(`
global: {scrape_interval: 300ms, scrape_timeout: 300ms, evaluation_interval: 500ms}
rule_files: [%q]
scrape_configs: [{job_name: program, static_configs: [{targets: [%q]}]}]
`, rules, target)
	fatal.If(t, os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600))
	cmd := exec.Command("prometheus", "--config.file="+filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address=127.0.0.1:0")
	line := start(t, cmd, `msg="Listening on"`)
	s := server{t, "http://" + regexp.MustCompile(`127\.0\.0\.1:[1-9]\d*`).FindString(line)}
	harness.Eventually(t, "Prometheus is ready", func() bool {
		_, status := fetch(t, s.url+"/-/ready")
		return status == http.StatusOK
	})
	return s
}

// promtool finds no fault in the rules, and its tests of them pass.
func TestAlertRules(t *testing.T) {
	harness.Long(t)
	for _, args := range [][]string{{"check", "rules", "alerts.yml"}, {"test", "rules", "alerts_test.yml"}} {
		cmd := exec.Command("promtool", args...)
		cmd.Dir = folder
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// A Prometheus scrapes a program with contention on a Redis. Each query of the dashboard has data,
// the rules work, the alert of a loss fires, and the figures are those that the program counted.
func TestPrometheus(t *testing.T) {
	harness.Long(t)
	target := start(t, harness.Child("TestProgram", serverAddr+"="+redisserver.Start(t).Addr()), "serving on ")
	s := scrape(t, target)
	queries := 0
	for _, p := range readDashboard(t).Panels {
		for _, q := range p.Targets {
			harness.Eventually(t, p.Title+" has data: "+expand(q.Expr), func() bool { return s.has(expand(q.Expr)) })
			queries++
		}
	}
	harness.Eventually(t, "the alert of a loss fires",
		func() bool { return s.has(`ALERTS{alertname="HoldfastLeaseLost", alertstate="firing"}`) })

	var rules struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
	}
	if getJSON(t, s.url+"/api/v1/rules", &rules); len(rules.Data.Groups) != 1 {
		t.Fatalf("the rules are %v", rules)
	}
	for _, r := range rules.Data.Groups[0].Rules {
		if r.Health != "ok" {
			t.Errorf("the rule %s is %s: %s", r.Name, r.Health, r.LastError)
		}
	}

	var want counts
	held := 0
	harness.Eventually(t, "each call and each lease of the program has ended", func() bool {
		want = counts{}
		getJSON(t, "http://"+target+"/stop", &want)
		ended := 0
		for _, n := range want.Calls {
			ended += n
		}
		held = want.Calls[telemetry.OutcomeGranted] + want.Calls[telemetry.OutcomePassedOn]
		return ended == want.Made && want.Ended == held
	})
	for _, outcome := range []telemetry.Outcome{telemetry.OutcomeGranted, telemetry.OutcomePassedOn,
		telemetry.OutcomeRefused, telemetry.OutcomeGaveUp} {
		if want.Calls[outcome] == 0 {
			t.Errorf("no call was %s", outcome)
		}
	}
	// On a busy machine some calls end with an error: the server had not answered in their time.
	for outcome, n := range want.Calls {
		s.exact(fmt.Sprintf("sum(holdfast_acquisitions_total{outcome=%q})", outcome), n)
	}
	s.exact("sum(holdfast_acquisitions_total)", want.Made)
	s.exact("sum(holdfast_wait_seconds_count)", want.Made)
	s.exact("sum(holdfast_hold_seconds_count)", held)
	s.exact("sum(holdfast_losses_total)", want.Lost)
	for outcome := range want.Requests { // what was given up is taken back after the call
		query := fmt.Sprintf(`sum(holdfast_server_requests_total{op!~"list|inspect", outcome=%q})`, outcome)
		harness.Eventually(t, query+" is what the program counted", func() bool {
			getJSON(t, "http://"+target+"/stop", &want)
			return s.ask(query)["map[]"] == float64(want.Requests[outcome])
		})
	}
	s.exact("sum(holdfast_holds)", 0)
	s.exact("sum(holdfast_waiters)", 0)
	t.Logf("%d queries have data; %d calls, %d leases, %d lost, %d requests answered, each scraped exactly", queries,
		want.Made, held, want.Lost,
		want.Requests[telemetry.RequestAnswered])
	get(t, "http://"+target+"/end")
}

// exact waits until a query has the value, which the next scrape brings.
func (s server) exact(query string, want int) {
	s.t.Helper()
	harness.Eventually(s.t, fmt.Sprintf("%s is %d; it is %v", query, want, s.ask(query)), func() bool {
		got := s.ask(query)
		return len(got) == 1 && got["map[]"] == float64(want)
	})
}
