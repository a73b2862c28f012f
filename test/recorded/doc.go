// Package recorded tests the whole pipeline on recorded histories of real pages. The
// pages are not part of this module: see docs/internals/recorded-pages.md. The package has
// tests only.
package recorded
