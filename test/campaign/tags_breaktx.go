//go:build breaktx

package main

// buildTags builds the binary whose transactions are committed in two halves.
const buildTags = "breaktx"
