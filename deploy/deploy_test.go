// Package deploy has tests of the files in this folder.
package deploy

import (
	"encoding/json"
	"os"
	"regexp"
	"testing"

	"go.yaml.in/yaml/v3"
)

// metrics returns the names of Vokter's metrics that docs/metrics.md describes. A test of the
// program holds that it has these and no others.
func metrics(t *testing.T) map[string]bool {
	t.Helper()
	doc, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]bool)
	for _, m := range regexp.MustCompile("(?m)^\\| `(vokter_\\w+)` ").FindAllStringSubmatch(string(doc), -1) {
		names[m[1]] = true
	}
	return names
}

// check reports the metrics of Vokter in query that do not exist.
func check(t *testing.T, known map[string]bool, where, query string) {
	t.Helper()
	found := regexp.MustCompile(`\bvokter_\w+`).FindAllString(query, -1)
	for _, name := range found {
		if base := regexp.MustCompile(`_bucket$`).ReplaceAllString(name, ""); !known[base] {
			t.Errorf("%s: there is no metric %s: %s", where, name, query)
		}
	}
	if len(found) == 0 && !regexp.MustCompile(`\b(process|go)_\w+`).MatchString(query) {
		t.Errorf("%s: the query names no metric: %s", where, query)
	}
}

func TestDashboardNamesMetrics(t *testing.T) {
	b, err := os.ReadFile("grafana/vokter.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(b, &d); err != nil || len(d.Panels) == 0 {
		t.Fatalf("%d panels, %v", len(d.Panels), err)
	}
	known := metrics(t)
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			check(t, known, p.Title, target.Expr)
		}
	}
}

func TestAlertsNameMetrics(t *testing.T) {
	b, err := os.ReadFile("prometheus/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal(b, &rules); err != nil || len(rules.Groups) == 0 {
		t.Fatalf("%+v, %v", rules, err)
	}
	known := metrics(t)
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			check(t, known, r.Alert, r.Expr)
		}
	}
}

// TestAlertsAreTried: alerts_test.yaml, which promtool runs, has a case for each alert in which it is
// silent, and one in which it fires.
func TestAlertsAreTried(t *testing.T) {
	var rules struct {
		Groups []struct{ Rules []struct{ Alert string } }
	}
	var tried struct {
		Tests []struct {
			Cases []struct {
				Alert string `yaml:"alertname"`
				Fires []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	for path, v := range map[string]any{"prometheus/alerts.yaml": &rules, "prometheus/alerts_test.yaml": &tried} {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(b, v); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	silent, fires := make(map[string]bool), make(map[string]bool)
	for _, test := range tried.Tests {
		for _, c := range test.Cases {
			silent[c.Alert] = silent[c.Alert] || len(c.Fires) == 0
			fires[c.Alert] = fires[c.Alert] || len(c.Fires) > 0
		}
	}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if !silent[r.Alert] || !fires[r.Alert] {
				t.Errorf("%s: silent %t, fires %t; try both in alerts_test.yaml", r.Alert, silent[r.Alert], fires[r.Alert])
			}
		}
	}
}

// TestYAML: the files of Docker and Kubernetes can be read.
func TestYAML(t *testing.T) {
	for _, path := range []string{"docker/compose.yaml", "docker/compose.kafka.yaml", "kubernetes/embedded.yaml", "kubernetes/kafka.yaml", "prometheus/prometheus.yaml", "prometheus/alerts_test.yaml", "vokter.yaml"} {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		decoder := yaml.NewDecoder(f)
		for n := 0; ; n++ {
			var v map[string]any
			if err := decoder.Decode(&v); err != nil {
				if n == 0 || err.Error() != "EOF" {
					t.Errorf("%s: document %d: %v", path, n, err)
				}
				break
			}
		}
	}
}
