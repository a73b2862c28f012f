package browser

import (
	"errors"
	"os"
	"path/filepath"
	"time"
)

// profilePrefix is how the names of profiles begin. A profile that is being made has another name, so
// that removeAbandonedProfiles finds locked ones only.
const profilePrefix = "vokter-browser-"

// maxSocketDir is how long the name of a directory is in which Chromium can make its socket.
const maxSocketDir = 60

// profile is the directory of one browser process: its cookies, its cache and its temporary files. The
// process that uses it holds the lock on the file "lock" in it.
type profile struct {
	dir  string
	lock *os.File
}

// newProfile makes an empty profile.
func newProfile() (*profile, error) {
	dir, err := os.MkdirTemp("", ".new-"+profilePrefix)
	if err != nil {
		return nil, err
	}
	p := &profile{dir: dir}
	if p.lock, err = os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR|os.O_EXCL, 0o600); err != nil {
		p.remove()
		return nil, err
	}
	if !lock(p.lock) {
		p.remove()
		return nil, errors.New("the profile of the browser cannot be locked")
	}
	named := filepath.Join(filepath.Dir(dir), profilePrefix+filepath.Base(dir)[len(".new-"+profilePrefix):])
	if err := os.Rename(dir, named); err != nil {
		p.remove()
		return nil, err
	}
	p.dir = named
	return p, nil
}

// env is the environment of the browser: on its own it would leave temporary files behind.
func (p *profile) env() []string {
	if len(p.dir) > maxSocketDir {
		return nil
	}
	return []string{"TMPDIR=" + p.dir}
}

// remove removes the profile. Processes of the browser may still be ending and make files.
func (p *profile) remove() {
	if p.lock != nil {
		defer p.lock.Close()
	}
	for range 50 {
		if os.RemoveAll(p.dir) == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// removeAbandonedProfiles removes the profiles that processes of this user left behind because they
// were killed.
func removeAbandonedProfiles() {
	found, err := filepath.Glob(filepath.Join(os.TempDir(), profilePrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range found {
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() || !isOwn(info) {
			continue
		}
		f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if lock(f) {
			_ = os.RemoveAll(dir) // the next start tries again if this fails
		}
		f.Close()
	}
}
