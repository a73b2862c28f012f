// Package noise tests what is told of pages that have clocks, counters, ids and advertisements: its site has
// pages whose true changes are known.
package noise
