package local

import "io"

// BackupTo writes a copy of the store, with all its namespaces, to w; see
// store.DB.BackupTo. Nothing stops meanwhile.
func (t *Transport) BackupTo(w io.Writer) error { return t.db.BackupTo(w) }
