// Package bench measures the Router as a whole: docs/internals/benchmarks.md has its results.
package bench
