package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"
	"golang.org/x/text/language"

	"github.com/vokter/vokter/internal/reading"
	"github.com/vokter/vokter/internal/render"
	filesource "github.com/vokter/vokter/sources/file"
)

// tokenFlags are the flags of how words are compared.
type tokenFlags struct {
	lang       string
	stem, stop bool
}

func (a *app) tokensVerb() *cobra.Command {
	var f tokenFlags
	cmd := a.flags.addTo(&cobra.Command{
		Use:   "tokens [--lang TAG] FILE",
		Short: "Shows the words of a text, and what they are compared as",
		Long: "Shows the words of a text (HTML or plain text; - is standard input), and what they are compared as. Each line has the number of a " +
			"word, its bytes in the text, the word, the word with case ignored, its stem, and whether it is a stop word. With --stem or --stop it " +
			"has the number, the bytes, the word, and what a subscription with these options compares.",
		Example: `  vokter-stream tokens --lang de page.html
  echo 'The houses of the gods' | vokter-stream tokens --stem --stop -`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return newUsageError(cmd, "name one file, or - for standard input; write %s FILE", cmd.CommandPath())
			}
			if f.lang != "" {
				if _, err := language.Parse(f.lang); err != nil {
					return newUsageError(cmd, "--lang: %q is not a language tag; write one such as en or pt-BR", f.lang)
				}
			}
			return a.printTokens(cmd.Context(), args[0], f)
		},
	}, outputFlags)
	fs := cmd.Flags()
	fs.StringVar(&f.lang, "lang", "", "the language `TAG` of the text, such as de (default what the page declares, else what is detected, else en)")
	fs.BoolVar(&f.stem, "stem", false, "show stems, as a subscription with stem compares them")
	fs.BoolVar(&f.stop, "stop", false, "leave out stop words, as a subscription with filter_stopwords does")
	return cmd
}

// Lines of JSON.
type (
	textLine struct {
		Kind     string `json:"kind"`
		Language string `json:"language"`
		From     string `json:"language_from"`
		Tokens   int    `json:"tokens"`
	}
	tokenLine struct {
		Kind   string `json:"kind"`
		Block  int    `json:"block"`
		N      int    `json:"n"`
		Start  int    `json:"start"`
		End    int    `json:"end"`
		Token  string `json:"token"`
		Folded string `json:"folded"`
		Stem   string `json:"stem"`
		Stop   bool   `json:"stop"`
	}
)

func (a *app) printTokens(ctx context.Context, name string, f tokenFlags) error {
	body, err := a.readFileOrStdin(name)
	if err != nil {
		return err
	}
	t, err := reading.TokensOf(ctx, filesource.ContentType(name), body, f.lang)
	if err != nil {
		return fmt.Errorf("%s cannot be read: %w", name, err)
	}
	out := a.newResults()
	out.printLine("%s", t.Describe())
	n := 0
	for i, b := range t.Blocks {
		out.printLine("")
		out.printLine("%s", b.Text)
		var rows [][]string
		for _, token := range b.Tokens {
			if f.stop && token.Stop {
				continue
			}
			n++
			out.printJSON(tokenLine{"token", i + 1, n, token.Start, token.End, token.Text, token.Folded, token.Stem, token.Stop})
			row := []string{strconv.Itoa(n), fmt.Sprintf("%d-%d", token.Start, token.End), token.Text}
			switch {
			case f.stem:
				row = append(row, token.Stem)
			case f.stop:
				row = append(row, token.Text)
			default:
				row = append(row, token.Folded, token.Stem)
				if token.Stop {
					row = append(row, "stop word")
				}
			}
			rows = append(rows, row)
		}
		out.printTable("  ", rows)
	}
	out.printJSON(textLine{"text", t.Language, string(t.From), n})
	return out.flush()
}

// maxPageBytes is the largest page that tokens reads, in bytes.
const maxPageBytes = 10 << 20

// readFileOrStdin reads the file called name, or standard input if name is "-". More than maxPageBytes bytes
// are an error.
func (a *app) readFileOrStdin(name string) ([]byte, error) {
	in := a.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, render.FileError(name, err)
		}
		defer f.Close()
		in = f
	}
	body, err := io.ReadAll(io.LimitReader(in, maxPageBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", name, err)
	}
	if len(body) > maxPageBytes {
		return nil, fmt.Errorf("%s has more than 10 MiB, the most that is read of a page", name)
	}
	return body, nil
}
