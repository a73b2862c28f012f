// Package portable writes the state of all groups of a pipeline to files, and reads them to fill
// any transport. Messages that wait in topics are not exported: the caller
// makes sure that there are none.
//
// An export is a directory. Its manifest.json, written last, says what it is and lists the
// other files, one for each group: lines of JSON, packed with zstd (zstd -dc shows them).
//
//	{"key":"https://example.com/","name":"page","value":"ogE="}
//
// A line is a value of the group's state under key and name, in base64, in the format of the stage
// that wrote it. Manifest.StateFormat is the version of these formats. The wakes that a group asked
// for are values, too, in a group that a transport names after the group and the topic. A key or
// name that is not UTF-8 is an object, {"base64":"..."}. The lines are in no particular order.
package portable
