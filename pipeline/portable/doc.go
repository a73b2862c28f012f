// Package portable reads and writes all that the groups of a pipeline keep as files that any
// transport can be filled from: their states and their wakes. What waits in topics is not
// among it: who exports makes sure that nothing does.
//
// An export is a directory. Its manifest.json, written last, says what it is and lists the
// other files, one for each group: lines of JSON, packed with zstd (zstd -dc shows them).
//
//	{"key":"https://example.com/","name":"page","value":"ogE="}
//	{"topic":"documents","key":"https://example.com/","at":"2026-01-31T15:04:05Z","at_start":true}
//
// The first is a value of the group's state under key and name, in base64, in the format of
// the stage that keeps it; Manifest.StateFormat is the version of these formats. The second
// is when key is to be woken by topic. A key or name that is no UTF-8 is an object,
// {"base64":"..."}. Lines are in no order that means anything.
package portable
