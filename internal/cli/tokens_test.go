package cli

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files of TestTokensGolden")

// TestTokensGolden reads a text in each language. -update writes what the program prints now;
// read the difference as one who knows the language before you commit it.
func TestTokensGolden(t *testing.T) {
	inputs, err := filepath.Glob("testdata/tokens/*.txt")
	if err != nil || len(inputs) < 26 {
		t.Fatalf("%d texts, %v", len(inputs), err)
	}
	for _, input := range inputs {
		lang := strings.TrimSuffix(filepath.Base(input), ".txt")
		t.Run(lang, func(t *testing.T) {
			r := runCLI(t, "tokens", "--lang", lang, input)
			if r.code != 0 {
				t.Fatalf("got %+v", r)
			}
			golden := strings.TrimSuffix(input, ".txt") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(r.stdout), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			got, expected := strings.Split(r.stdout, "\n"), strings.Split(string(want), "\n")
			for i := range max(len(got), len(expected)) {
				if i >= len(got) || i >= len(expected) || got[i] != expected[i] {
					t.Fatalf("%s differs from line %d on; after a look at it, write it with -update. Got:\n%s", golden, i+1, r.stdout)
				}
			}
		})
	}
}

func TestTokens(t *testing.T) {
	short := file(t, "short.html", `<p lang="en">The houses of the gods</p>`)
	german := file(t, "german.html", `<html lang="de-AT"><p>Die Häuser der Götter</p>`)
	long := file(t, "long.txt", "O gigante dos cem olhos vigiava a novilha de dia e de noite.\n")
	items := file(t, "items.json", `{"items":[{"title":"The first house"},{"title":"The second house"}]}`)
	feed := file(t, "feed.rss", `<rss version="2.0"><channel><language>de</language><title>Neues</title><item><title>Die Häuser</title></item></channel></rss>`)
	table := file(t, "table.csv", "name,price\nhouse,12.50\n")
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{items, 0, "The first house"},
		{feed, 0, "German (de), declared by the page"},
		{table, 0, "12.50"},
		{short, 0, "English (en), assumed"},
		{german, 0, "German (de), declared by the page"},
		{long, 0, "Portuguese (pt), detected"},
		{"--lang ja " + short, 0, "Japanese (ja), given; it has neither stems nor stop words"},
		{"--lang eo " + short, 0, "Language: eo, given"},
		{"--stem --stop " + short, 0, "\n  1  4-10   houses  hous\n  2  18-22  gods    god\n"},
		{"--format json " + short, 0, `{"kind":"token","block":1,"n":1,"start":0,"end":3,"token":"The","folded":"the","stem":"the","stop":true}`},
		{"-", 1, "- cannot be read: the page is empty"},
		{"/nowhere", 1, "/nowhere"},
		{"", 2, "name one file, or - for standard input"},
		{"--lang ?? -", 2, `"??" is not a language tag`},
	} {
		r := runCLI(t, append([]string{"tokens"}, strings.Fields(c.args)...)...)
		if r.code != c.code || !strings.Contains(r.stdout+r.stderr, c.want) {
			t.Errorf("tokens %s: got %+v, want %d with %q", c.args, r, c.code, c.want)
		}
	}
}
