package cli

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/internal/manage"
)

func (a *app) tokenVerb() *cobra.Command {
	cmd := group("token", "Prints the token that logs in to the web page, or makes tokens", "", a.flags.addTo(&cobra.Command{
		Use:   "new",
		Short: "Prints a random token and its hash",
		Long: "Prints a random token and its hash. Give the token to its user, and put the hash into the configuration, under api: tokens:. " +
			"The token is kept nowhere.",
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			token := rand.Text()
			hash := config.HashToken(token)
			out := a.newResults()
			out.printObject(struct{}{}, "kind", "token", "token", token, "hash", hash)
			out.printLine("token: %s", token)
			out.printLine("hash:  %s", hash)
			return out.flush()
		},
	}, outputFlags), a.flags.addTo(&cobra.Command{
		Use:   "renew",
		Short: "Replaces the token of a data directory, and prints the new one",
		Long:  "Replaces the token of a data directory, and prints the new one. Everybody who is logged in with the old one, with the password or with a link is logged out.",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.printToken(cmd, func(dir string) (string, error) {
				c, silent := findProcess(cmd.Context(), dir)
				if c == nil {
					if errors.Is(silent, manage.ErrToken) {
						return "", silent
					}
					return manage.RenewToken(dir)
				}
				defer c.Close()
				return c.RenewToken(cmd.Context())
			})
		},
	}, askFlags))
	more := cmd.RunE
	cmd.Long = "Prints the token of a data directory, with which one logs in to the web page and asks the API for everything. It stays the same until renew replaces it."
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return more(cmd, args)
		}
		return a.printToken(cmd, func(dir string) (string, error) {
			token, err := manage.ReadToken(dir)
			if errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("%s has no token yet: the first start of a process with a listener makes it", dir)
			}
			return token, err
		})
	}
	return a.flags.addTo(cmd, askFlags)
}

// printToken prints the token that find returns for the data directory of the flags.
func (a *app) printToken(cmd *cobra.Command, find func(dir string) (string, error)) error {
	dir, err := a.dataDirectory(cmd)
	if err != nil {
		return err
	}
	token, err := find(dir)
	if err != nil {
		return err
	}
	out := a.newResults()
	out.printObject(struct{}{}, "kind", "token", "token", token)
	out.printLine("%s", token)
	return out.flush()
}
