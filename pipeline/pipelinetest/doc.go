// Package pipelinetest has the conformance suites for transports, stores, sinks, sources and
// readers: one exported function for each. Tests of promises that an implementation does not
// claim are skipped.
package pipelinetest
