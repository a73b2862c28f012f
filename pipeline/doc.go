// Package pipeline holds the words that the author of a sink, a source, a fetcher, a reader or
// a stemmer needs: the interfaces that they implement, subscriptions, notifications, and the
// errors that decide what happens next. It imports nothing else of this module. Messages,
// topics and transactions stand in package flow below it.
package pipeline
