// Package upgrade tests that data directories of older versions go on with today's: that
// what was pending is delivered, what was delivered is not repeated, and the next change is
// found. It has no code.
package upgrade
