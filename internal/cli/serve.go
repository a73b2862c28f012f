package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter/config"
)

// serveFlags are the flags of serve.
type serveFlags struct{ listen string }

// defaultListen is where serve listens: on this machine only.
const defaultListen = "127.0.0.1:9000"

func (a *app) serveVerb() *cobra.Command {
	var flags serveFlags
	cmd := a.flags.addTo(&cobra.Command{
		Use:   serveName,
		Short: "Serves the web page, where pages and receivers are added",
		Long: "Serves the web page until SIGTERM. It needs no configuration: pages and receivers are added in the browser and kept in the data " +
			"directory. It prints a link that logs in once, within an hour; token prints what logs in later.\n\n" +
			"What needs a configuration, such as pages with a login, stands in a file for run. With the same data directory it has what was added here.",
		Example: `  vokter-stream serve
  vokter-stream serve --listen :9000 --data /data    # in a container`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, _, err := net.SplitHostPort(flags.listen); err != nil {
				return newUsageError(cmd, "--listen: %q is not an address; write HOST:PORT such as %s", flags.listen, defaultListen)
			}
			return a.runFile(cmd, new(limitFlags), &flags)
		},
	}, outputFlags)
	fs := cmd.Flags()
	fs.StringVar(&flags.listen, "listen", defaultListen, "the `ADDRESS` of the web page and the API; :9000 is reached from other machines, too")
	fs.StringVar(&a.flags.data, "data", "", "the data directory `DIR` (default: vokter in the directory that the system has for data of this user)")
	fs.Func("allow", "a network `CIDR` that may be reached besides public addresses (repeatable)", a.flags.addPrefixes)
	return cmd
}

// loadServe returns the configuration of serve, as a file with these two lines would be.
func (a *app) loadServe(flags *serveFlags) (*config.Config, error) {
	dir := a.flags.data
	if dir == "" {
		var err error
		if dir, err = userDirectory(); err != nil {
			return nil, &usageError{err: err}
		}
		if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil { // the store makes dir itself
			return nil, err
		}
	}
	log := a.flags.logger(a.stderr, slog.LevelWarn)
	c, err := config.Parse("serve", fmt.Appendf(nil, "listen: %q\n", flags.listen), config.Options{
		Registry: a.plugins(), Named: a.onFile, Allow: a.flags.allow, Data: dir, Receivers: a.receivers, Logger: log,
	})
	if err != nil {
		return nil, err
	}
	c.Router.Logger, c.Warnings = log, nil // they are about what a file lacks
	c.Router.Origin = serveName            // the subscriptions of a file for the same directory stay
	return c, nil
}

// userDirectory returns the data directory of this user, as the conventions of the system have it.
func userDirectory() (string, error) {
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "vokter"), nil
	}
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		dir := os.Getenv("LocalAppData")
		var err error
		if runtime.GOOS == "darwin" {
			dir, err = os.UserConfigDir() // Application Support, which is for data, too
		}
		if dir != "" && err == nil {
			return filepath.Join(dir, "vokter"), nil
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", errors.New("this user has no home directory; name the data directory with --data DIR")
	}
	return filepath.Join(home, ".local", "share", "vokter"), nil
}

// printLink prints the link that logs in once to the web page of a process that listens at addr.
func (a *app) printLink(addr string, code string) {
	at, err := netip.ParseAddrPort(addr)
	if err == nil && at.Addr().IsUnspecified() {
		addr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), at.Port()).String()
	}
	fmt.Fprintf(a.stdout, "open http://%s/login?once=%s\n", addr, code)
}
