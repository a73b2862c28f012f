//go:build !unix

package store

// LockHolder returns "": this system does not say which process has locked a directory.
func LockHolder(string) string { return "" }
