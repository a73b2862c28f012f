// Package sinks delivers notifications. Each receiver has a queue of its own: one
// attempt at a time, in order, so a receiver that fails holds up nobody but itself.
//
// The queue is a pure state machine (Policy.apply). Delivery drives it as the handler of
// the topic of notifications, with its state in the transaction, and a pool of its own
// makes the attempts outside any handler. The sinks themselves are the packages below.
package sinks
