// Package pipeline holds the vocabulary that the stages, transports, sources and
// sinks of Vokter share: messages and their topics, the transaction in which a
// message is handled, the errors that decide what happens next, and the small
// interfaces that plugins implement. It imports nothing else of this module.
package pipeline
