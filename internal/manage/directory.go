package manage

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/vokter/vokter/inspect/client"
)

// Files in a data directory with which other processes of the machine find the process that
// runs it and authenticate to it.
const (
	addressFile  = "listen"    // HOST:PORT
	runTokenFile = "run-token" // readable by its owner only, and worth nothing once the process has ended
	tokenFile    = "token"     // readable by its owner only, for people; it stays
)

// NewToken returns a token that nobody can guess.
func NewToken() string { return rand.Text() }

// LoginFiles are the files of a data directory with the token for people and their logins. They are made beside the store.
var LoginFiles = []string{tokenFile, loginsFile}

// Announce writes the token of this run, the logins and addr (HOST:PORT, or client.Unix and a path) to the data directory dir. The caller must own
// the directory. Announce fails where other users could read the tokens.
func Announce(dir, addr, runToken string, l *Logins) error {
	if err := errors.Join(l.keep(), ReplaceFile(filepath.Join(dir, runTokenFile), runToken, 0o600)); err != nil {
		return err
	}
	// The address comes last: whoever finds it must also find its token.
	return ReplaceFile(filepath.Join(dir, addressFile), addr, 0o644)
}

// Withdraw removes the address and the token of this run from dir, unless another process has replaced them.
func Withdraw(dir, addr, runToken string) {
	for name, left := range map[string]string{addressFile: addr, runTokenFile: runToken} {
		path := filepath.Join(dir, name)
		if b, err := os.ReadFile(path); err == nil && strings.TrimSpace(string(b)) == left {
			_ = os.Remove(path) // an old file does no harm: the next start replaces it
		}
	}
}

// ReplaceFile atomically replaces the file at path by one that holds line and has the mode perm.
func ReplaceFile(path, line string, perm fs.FileMode) (err error) {
	temp := path + ".new"
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temp) // err is more important
		}
	}()
	_, err = f.WriteString(line + "\n")
	info, statErr := f.Stat()
	if err = errors.Join(err, statErr, f.Close()); err != nil {
		return err
	}
	if perm&0o077 == 0 && isOpenToOthers(info) {
		return fmt.Errorf("others can read %s, since its file system keeps no permissions: name a data directory on another one, or remove listen", path)
	}
	return os.Rename(temp, path)
}

// isOpenToOthers reports whether other users than its owner can use a file. Windows has no such modes;
// there the directory protects the file.
func isOpenToOthers(info fs.FileInfo) bool {
	return runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0
}

var (
	// ErrNoAddress says that a data directory holds no address of a process.
	ErrNoAddress = errors.New("it has left no address there")
	// ErrToken says that the permissions of the token in a data directory are wrong.
	ErrToken = errors.New("the token of the process that runs the data directory")
)

// Find returns a client.Client of the process that announced itself in the data directory dir. The
// process may have ended. Find returns ErrNoAddress, ErrToken, or an error about an invalid
// address.
func Find(dir string) (*client.Client, error) {
	path := filepath.Join(dir, addressFile)
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, ErrNoAddress
	}
	addr, err := reachableAddr(strings.TrimSpace(string(b)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	token, err := readToken(filepath.Join(dir, runTokenFile))
	if err != nil {
		return nil, err
	}
	return client.New(addr, token), nil
}

// reachableAddr returns the address at which to ask a process of this machine that listens at addr.
func reachableAddr(addr string) (string, error) {
	if strings.HasPrefix(addr, client.Unix) {
		return addr, nil
	}
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return "", fmt.Errorf("%q is not an address", addr)
	}
	ip := at.Addr().Unmap()
	switch {
	case ip.IsUnspecified():
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), at.Port()).String(), nil
	case ip.IsLoopback():
		return addr, nil
	}
	// A directory copied from another machine holds an address of that machine.
	own, err := net.InterfaceAddrs()
	if err != nil {
		return "", err
	}
	for _, a := range own {
		if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip.AsSlice()) {
			return addr, nil
		}
	}
	return "", fmt.Errorf("%s is not an address of this machine", ip)
}

// readToken reads the token at path, which nobody but its owner may be able to read.
func readToken(path string) (string, error) {
	info, err := os.Stat(path)
	if err == nil && isOpenToOthers(info) {
		return "", fmt.Errorf("%w is open to others: %s has the mode %04o; write chmod 600 %[2]s, and restart the process if somebody may have read it",
			ErrToken, path, info.Mode().Perm())
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrPermission) {
		return "", fmt.Errorf("%w cannot be read by this user (%w); run the command as the user who runs the process", ErrToken, err)
	}
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(b)), nil
}
