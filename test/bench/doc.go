// Package bench measures the Router as a whole: docs/benchmarks.md has its results.
package bench
