// Package schemas has the JSON Schemas of the public records: the file of a type is its ce_type with .json behind it.
package schemas

import "embed"

// Files are the schemas.
//
//go:embed *.json
var Files embed.FS
