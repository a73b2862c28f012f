// Package sim runs the real stages over a simulated transport, fetcher and receivers,
// with everything that may go wrong going wrong, and compares every notification with
// what the independent oracle says must have been sent.
//
// One process keeps everything itself, as the local transport does, or several share the
// lanes as they do over Kafka: ownership moves, with and without its owner's knowledge;
// transactions bundle messages, state is restored from a topic that is compacted, and what
// nobody waits for may be lost with its owner.
//
// All chance comes from one seed and all time from one virtual clock, so that a run can
// be repeated exactly.
package sim
