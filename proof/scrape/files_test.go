package scrape_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/promholdfast"
)

const folder = "../../deploy"

// A dashboard is what the tests read of one.
type dashboard struct {
	Panels []struct {
		Title   string
		Targets []struct{ Expr string }
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, name))
	fatal.If(t, err)
	return string(text)
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	fatal.If(t, json.Unmarshal([]byte(read(t, "grafana.json")), &d))
	return d
}

func metrics(t *testing.T) (names []string) {
	t.Helper()
	described := make(chan *prometheus.Desc, 100)
	promholdfast.NewObserver().Describe(described)
	promholdfast.NewCollector(holdfasttest.New(t), nil).Describe(described)
	promholdfast.NewShardCollector().Describe(described)
	close(described)
	for d := range described {
		names = append(names, regexp.MustCompile(`fqName: "([^"]*)"`).FindStringSubmatch(d.String())[1])
	}
	return names
}

// named returns the metrics that a text names. The endings that a histogram adds to its name are
// cut off.
func named(text string) (names []string) {
	for _, name := range regexp.MustCompile(`holdfast_[a-z_]+`).FindAllString(text, -1) {
		names = append(names, strings.TrimSuffix(name, "_bucket"))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Each metric in the files is one of promholdfast, and the dashboard shows each of them.
func TestMetricsOfDashboardAndAlertsExist(t *testing.T) {
	have := metrics(t)
	for _, name := range []string{"grafana.json", "alerts.yml", "alerts_test.yml"} {
		all := named(read(t, name))
		if len(all) == 0 {
			t.Errorf("%s names no metric", name)
		}
		for _, metric := range all {
			if !slices.Contains(have, metric) {
				t.Errorf("%s has %s, which promholdfast does not describe", name, metric)
			}
		}
	}
	shown := named(read(t, "grafana.json"))
	for _, metric := range have {
		if !slices.Contains(shown, metric) {
			t.Errorf("the dashboard does not show %s", metric)
		}
	}
}

// expand puts in what Grafana puts in for its variables, when all of each is chosen.
func expand(query string) string {
	return strings.NewReplacer("$__rate_interval", "30s", "$job", ".*", "$kind", ".*", "$class", ".*").Replace(query)
}

// The runbook of each alert is a section of docs/operations.md.
func TestRunbooksExist(t *testing.T) {
	rules, sections := read(t, "alerts.yml"), map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(read(t, "../docs/operations.md"),
		-1) {
		sections[strings.ReplaceAll(strings.ToLower(heading[1]), " ", "-")] = true
	}
	links := regexp.MustCompile(`runbook_url: \S*/docs/operations\.md#(\S+)`).FindAllStringSubmatch(rules, -1)
	if alerts := strings.Count(rules, "- alert:"); alerts == 0 || len(links) != alerts {
		t.Errorf("%d alerts have %d runbooks", alerts, len(links))
	}
	for _, link := range links {
		if !sections[link[1]] {
			t.Errorf("docs/operations.md has no section %s", link[1])
		}
	}
}
