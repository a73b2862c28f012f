// Package pipeline has what the author of a sink, a source, a fetcher, a reader or a stemmer
// needs: the interfaces to implement, and the subscriptions, notifications and pages that they
// handle. Package failure below it marks the errors of a sink with what happens next. Messages,
// topics and transactions, which only the pipeline itself needs, are in package flow.
package pipeline
