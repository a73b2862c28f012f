package cli

import (
	"crypto/rand"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/internal/nearest"
)

func (a *app) tokenVerb() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Makes tokens of the management API",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return newUsageError(cmd, "write %s new", cmd.CommandPath())
			}
			return newUsageError(cmd, "unknown verb %q; %s", args[0], nearest.Hint(args[0], verbNames(cmd)))
		},
	}
	cmd.AddCommand(a.tokenNewVerb())
	return cmd
}

// apiTokenLine is the JSON of a token.
type apiTokenLine struct {
	Kind  string `json:"kind"`
	Token string `json:"token"`
	Hash  string `json:"hash"`
}

func (a *app) tokenNewVerb() *cobra.Command {
	return a.flags.addTo(&cobra.Command{
		Use:   "new",
		Short: "Prints a random token and its hash",
		Long: "Prints a random token and its hash. Give the token to its user, and put the hash into the configuration, under api: tokens:. " +
			"The token is kept nowhere.",
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			token := rand.Text()
			out := a.newResults()
			out.printJSON(apiTokenLine{"token", token, config.HashToken(token)})
			out.printLine("token: %s", token)
			out.printLine("hash:  %s", config.HashToken(token))
			return out.flush()
		},
	}, outputFlags)
}
