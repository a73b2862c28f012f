//go:build !unix

package store

// lockHolder returns "": this system does not say which process has locked a directory.
func lockHolder(string) string { return "" }
