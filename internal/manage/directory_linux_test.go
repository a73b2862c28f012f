package manage

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/vokter/vokter/inspect/client"
)

// TestTokenOfAnotherUser: a verb of another user than the process's says what to do.
func TestTokenOfAnotherUser(t *testing.T) {
	dir := t.TempDir()
	if err := Announce(dir, "127.0.0.1:9000", NewToken(), openLogins(t, "")); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	found := make(chan error)
	go func() {
		if os.Geteuid() != 0 {
			found <- errors.Join(os.Chmod(filepath.Join(dir, tokenFile), 0), errorOf(Find(dir)))
			return
		}
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		err := syscall.Setfsuid(65534)
		found <- errors.Join(err, errorOf(Find(dir)))
	}()
	if err := <-found; !errors.Is(err, ErrToken) || !strings.Contains(err.Error(), "run the command as the user who runs the process") {
		t.Errorf("got %v", err)
	}
}

func errorOf(_ *client.Client, err error) error { return err }
