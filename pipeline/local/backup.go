package local

import "io"

// Backup makes dir a copy of the store, with all its namespaces; see store.DB.Backup.
// Nothing stops meanwhile.
func (t *Transport) Backup(dir string) error { return t.db.Backup(dir) }

// BackupTo writes such a copy to w; see store.DB.BackupTo.
func (t *Transport) BackupTo(w io.Writer) error { return t.db.BackupTo(w) }
