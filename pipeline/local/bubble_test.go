//go:build !breaktx

package local_test

// bubble says whether the suites run in testing/synctest bubbles.
const bubble = true
