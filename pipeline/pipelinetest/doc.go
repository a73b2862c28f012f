// Package pipelinetest holds the conformance suites for transports and stores: one
// exported function for each kind. What an implementation does not claim is skipped,
// visibly; everything else runs in plain go test.
package pipelinetest
