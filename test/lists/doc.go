// Package lists holds what is told of lists that change against what happened to their items, through reader, diff and
// match.
package lists
