//go:build breaktx

package local_test

// A broken commit sleeps under locks, for which time does not pass in a bubble.
const bubble = false
