package noise

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/restless"
	"github.com/vokter/vokter/stages/diff"
	"github.com/vokter/vokter/stages/fetch/readers/html"
)

func readText(t *testing.T, body string) string {
	t.Helper()
	read, err := html.New().Read(context.Background(), pipeline.Raw{ContentType: "text/html; charset=utf-8", Body: []byte(body)}, pipeline.View{})
	if err != nil {
		t.Fatal(err)
	}
	return read.Content
}

// figures are what was told of a page.
type figures struct {
	alerts, sent, churn, trueChecks, trueSent int
}

// wordy are the pages whose words change at nearly every check too, and those of which each change is true.
var wordy = map[string]bool{"shop": true, "jobs": true, "forum": true, "recipe": true, "abtest": true, "banner": true, "adnews": true, "stock*": true}

// TestSite: on each page numbers are silent from the fifth check on, and every true change is told.
func TestSite(t *testing.T) {
	var all figures
	for seed := range uint64(3) {
		for k, m := range pages() {
			f := watch(t, m, rand.New(rand.NewPCG(uint64(k), 77+seed)))
			if f.trueSent != f.trueChecks {
				t.Errorf("seed %d: %s: of %d checks with a true change %d were told", seed, m.name, f.trueChecks, f.trueSent)
			}
			if f.churn > 6 && !wordy[m.name] {
				t.Errorf("seed %d: %s: told %d times of numbers alone", seed, m.name, f.churn)
			}
			all.alerts, all.sent, all.churn = all.alerts+f.alerts, all.sent+f.sent, all.churn+f.churn
		}
	}
	t.Logf("of %d alerts %d are told, %d of them without a true change", all.alerts, all.sent, all.churn)
}

// watch takes a page through 200 checks, 10 minutes apart.
func watch(t *testing.T, m made, r *rand.Rand) (f figures) {
	now := time.Date(2026, 11, 2, 8, 1, 0, 0, time.UTC)
	var table restless.Table
	var old string
	for i := range uint64(200) {
		body, wants := m.page(int(i), now, r)
		text := readText(t, "<!DOCTYPE html><title>"+m.name+"</title><body>"+body)
		if i > 0 {
			s := flow.Snapshot{N: 2, Previous: 1, Old: old, New: text, Restless: table.Restless(i).Pack(), Elapsed: 10 * time.Minute}
			f.count(t, m.name, i, s, wants)
			l := table.Learn(old, text, i, 10*time.Minute)
			table.Said(l.Began)
		}
		old, now = text, now.Add(10*time.Minute)
	}
	return f
}

// count counts what is told of a change, and reports each true text that is in muted differences alone.
func (f *figures) count(t *testing.T, name string, check uint64, s flow.Snapshot, wants []string) {
	c, _ := diff.ChangeOf(s)
	var told, muted []string
	for _, g := range c.Groups {
		for _, d := range g.Differences {
			if d.Muted == "" {
				told = append(told, d.Text)
			} else {
				muted = append(muted, d.Text)
			}
		}
	}
	if len(told)+len(muted) == 0 {
		return
	}
	f.alerts++
	if len(told) > 0 {
		f.sent++
	}
	if len(wants) == 0 {
		if len(told) > 0 {
			f.churn++
		}
		return
	}
	f.trueChecks++
	if len(told) > 0 {
		f.trueSent++
	}
	has := func(texts []string, want string) bool {
		for _, text := range texts {
			if strings.Contains(text, want) {
				return true
			}
		}
		return false
	}
	for _, want := range wants {
		if has(muted, want) && !has(told, want) {
			t.Errorf("%s, check %d: %q is muted", name, check, want)
		}
	}
}
