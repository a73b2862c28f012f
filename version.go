package vokter

import "runtime/debug"

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
