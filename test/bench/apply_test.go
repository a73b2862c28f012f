package bench_test

import (
	"flag"
	"fmt"
	"slices"
	"testing"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
)

var (
	applySubscriptions = flag.Int("apply.subscriptions", 1000, "subscriptions of BenchmarkApply, each to a page of its own")
	applySingle        = flag.Int("apply.single", 100, "how many of them are made one by one")
)

// BenchmarkApply measures lists of subscriptions on the disk: a new one, the same again, and one in which a hundredth
// changed and a hundredth is gone. Beside it subscriptions are made, changed and cancelled one by one.
func BenchmarkApply(b *testing.B) {
	list := make([]pipeline.Subscription, *applySubscriptions)
	for i := range list {
		list[i] = pipeline.Subscription{
			URL: fmt.Sprintf("https://host-%d.example.com/page/%d", i%1000, i), Client: "client", Keywords: []string{"lost", "personal data"},
			Interval: pipeline.Never, Sinks: []string{"none"},
		}
	}
	part := max(1, len(list)/100)
	next := slices.Clone(list[:len(list)-part])
	for i := range part {
		next[i].Keywords = []string{"found"}
	}
	open := func() vokter.Config {
		return vokter.Config{Dir: b.TempDir(), Sinks: map[string]pipeline.Sink{"none": vokter.Listener{}}}
	}
	for range b.N {
		start(b, open(), func(r *vokter.Router) {
			<-r.Running()
			for _, step := range []struct {
				name                                 string
				list                                 []pipeline.Subscription
				created, changed, unchanged, removed int
			}{
				{"new", list, len(list), 0, 0, 0}, {"same", list, 0, 0, len(list), 0}, {"differs", next, 0, part, len(list) - 2*part, part},
			} {
				before := used(b)
				report, err := r.Apply(b.Context(), "bench", step.list)
				if err != nil || report.Created != step.created || report.Changed != step.changed || report.Unchanged != step.unchanged || report.Removed != step.removed {
					b.Fatalf("%s: got %d created, %d changed, %d unchanged, %d removed, %v", step.name, report.Created, report.Changed, report.Unchanged, report.Removed, err)
				}
				reportUsed(b, step.name, before)
			}
		})
		start(b, open(), func(r *vokter.Router) {
			<-r.Running()
			before := used(b)
			for _, s := range list[:*applySingle] {
				if err := r.Subscribe(b.Context(), s); err != nil {
					b.Fatal(err)
				}
			}
			reportUsed(b, "single", before)
		})
	}
}

// reportUsed reports the time since before, and the processor time.
func reportUsed(b *testing.B, name string, before usage) {
	after := used(b)
	b.ReportMetric(after.at.Sub(before.at).Seconds(), "s-"+name)
	b.ReportMetric((after.cpu - before.cpu).Seconds(), "cpu-s-"+name)
}
