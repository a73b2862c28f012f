package text

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/vokter/vokter/pipeline/text/stemmers"
)

// versionHash is the hash of what Version names, as far as the sample of TestVersion shows it.
const versionHash = "e36042f1094aad7e"

// TestVersion reads the sample texts and all stop words in every language and every form.
func TestVersion(t *testing.T) {
	samples, err := filepath.Glob("testdata/samples/*.txt")
	if err != nil || len(samples) < 20 {
		t.Fatalf("%d samples, %v", len(samples), err)
	}
	var words []string
	for _, path := range samples {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, token := range Tokens(string(b)) {
			words = append(words, string(b[token.Start:token.End]))
		}
	}
	h := sha256.New()
	fmt.Fprintln(h, words)
	langs := NewLanguages(stemmers.All()...)
	for _, l := range langs.All() {
		n := langs.Normalizer(l.Code)
		fmt.Fprintln(h, l.Code)
		for _, list := range [][]string{words, l.Stopwords} {
			for _, w := range list {
				fmt.Fprint(h, n.IsStop(w))
				for f := Form(0); f <= FormCase|FormMarks|FormStem; f++ {
					fmt.Fprint(h, " ", n.Term(w, f))
				}
			}
		}
	}
	if got := hex.EncodeToString(h.Sum(nil))[:16]; got != versionHash {
		t.Errorf("words are found or compared in another way: change Version, and versionHash to %q", got)
	}
}
