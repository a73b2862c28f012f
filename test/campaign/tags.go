//go:build !breaktx

package main

// buildTags are the tags that the binary is built with, unless -tags says otherwise.
const buildTags = ""
