// Package beside measures one way of doing something beside another, for benchmarks: only
// what ran in turns on the same machine can be compared.
package beside

import (
	"slices"
	"testing"
	"time"
)

// Run runs ours and bare in turns, each of which makes so many deliveries, and reports the
// ratio of their medians as x/bare, and ours as deliveries/s. An error ends the benchmark.
func Run(b *testing.B, deliveries int, ours, bare func() error) {
	b.Helper()
	var us, them []time.Duration
	for b.Loop() {
		us = append(us, timed(b, ours))
		them = append(them, timed(b, bare))
	}
	b.ReportMetric(float64(median(us))/float64(median(them)), "x/bare")
	b.ReportMetric(float64(deliveries)*float64(time.Second)/float64(median(us)), "deliveries/s")
}

func timed(b *testing.B, f func() error) time.Duration {
	b.Helper()
	began := time.Now()
	if err := f(); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}

func median(ds []time.Duration) time.Duration {
	slices.Sort(ds)
	return ds[len(ds)/2]
}
