// Package sim runs the real stages over a simulated transport, fetcher and receivers,
// with everything that may go wrong going wrong, and compares every notification with
// what the independent oracle says must have been sent.
//
// All chance comes from one seed and all time from one virtual clock, so that a run can
// be repeated exactly.
package sim
