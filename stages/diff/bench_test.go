package diff

import (
	"fmt"
	"testing"

	"github.com/vokter/vokter/pipeline/text"
)

// benchmark repeats Diff and reports the cells it spends beside the time.
func benchmark(b *testing.B, old, new *text.Doc) {
	b.Helper()
	b.ReportAllocs()
	b.SetBytes(int64(len(old.Content) + len(new.Content)))
	var spent int64
	for b.Loop() {
		_, spent = diffWithin(old, new, defaultLimits)
	}
	b.ReportMetric(float64(spent), "cells/op")
}

func BenchmarkDiff(b *testing.B) {
	for _, size := range []int{20_000, 200_000} {
		lines := newPage(1, size)
		for _, percent := range []float64{1, 10, 100} {
			b.Run(fmt.Sprintf("%dKB/%v%%", size/1000, percent), func(b *testing.B) {
				benchmark(b, newDoc(lines, "\n"), newDoc(changeWords(1, lines, percent), "\n"))
			})
		}
	}
	lines := newPage(2, 200_000)
	for _, percent := range []float64{1, 50} {
		b.Run(fmt.Sprintf("one line of 200KB/%v%%", percent), func(b *testing.B) {
			benchmark(b, newDoc(lines, " "), newDoc(changeWords(2, lines, percent), " "))
		})
	}
}

func BenchmarkAdversaries(b *testing.B) {
	for _, a := range hardCases() {
		b.Run(a.name, func(b *testing.B) { benchmark(b, a.old, a.new) })
	}
}

// BenchmarkAnalyze finds the tokens of a text, and reads them where they are packed: one of the
// two must be done with both texts before any Diff.
func BenchmarkAnalyze(b *testing.B) {
	d := newDoc(newPage(1, 20_000), "\n")
	packed := text.PackTokens(d)
	b.Run("find", func(b *testing.B) {
		b.SetBytes(int64(len(d.Content)))
		for b.Loop() {
			text.Analyze(d.Content)
		}
	})
	b.Run("read", func(b *testing.B) {
		b.SetBytes(int64(len(d.Content)))
		for b.Loop() {
			text.AnalyzePacked(d.Content, nil, packed)
		}
	})
}
