// Package vokter watches documents on the web: it fetches pages, keeps versions of
// their texts, finds what was added or removed, and tells exactly those whose
// keywords the change touches.
//
// A [Router] chains the stages fetch, index, diff, match and delivery as Watermill
// handlers over a transport. Build one with [New] from a [Config], and call
// [Router.Run]. Without a data directory everything is kept in memory.
package vokter

import (
	"runtime/debug"
)

// version is set by the linker for a release.
var version string

// Version is the version of this module: that of the release, or of the module in the
// program that embeds it, or "dev".
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range append(info.Deps, &info.Main) {
			if m.Path == "github.com/vokter/vokter" && m.Version != "" && m.Version != "(devel)" {
				return m.Version
			}
		}
	}
	return "dev"
}
