// Package index owns pages: the numbers of their checks, their schedule, the hashes and
// validators that stand, their versions, the order of subscribe, cancel and version, and
// when a page is given up. Nobody else decides about any of them.
//
// Apply is all of it as a pure function over a Page. Stage is the Processor around it,
// which keeps pages in the state of a transaction and carries Apply's outputs out.
package index
