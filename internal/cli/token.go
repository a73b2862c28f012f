package cli

import (
	"crypto/rand"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter/config"
)

func (a *app) tokenVerb() *cobra.Command {
	return group("token", "Makes tokens of the management API", "new", a.flags.addTo(&cobra.Command{
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
	}, outputFlags))
}
