// Package stemmers has the stemmers of the Snowball project besides that of English, which every Router has. A program
// gives those of its languages to vokter.Config.Stemmers, or All of them.
package stemmers

import (
	"strings"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/arabic"
	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/finnish"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/irish"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/romanian"
	"github.com/blevesearch/snowballstem/tamil"
	"github.com/blevesearch/snowballstem/turkish"
	"github.com/kljensen/snowball/french"
	"github.com/kljensen/snowball/hungarian"
	"github.com/kljensen/snowball/norwegian"
	"github.com/kljensen/snowball/russian"
	"github.com/kljensen/snowball/spanish"
	"github.com/kljensen/snowball/swedish"

	"github.com/vokter/vokter/pipeline"
)

// The stemmers. A program that names some of them does not link the others.
var (
	Arabic     pipeline.Stemmer = generated{"ar", arabic.Stem}
	Danish     pipeline.Stemmer = generated{"da", danish.Stem}
	Dutch      pipeline.Stemmer = generated{"nl", dutch.Stem}
	Finnish    pipeline.Stemmer = generated{"fi", finnish.Stem}
	French     pipeline.Stemmer = snowball{"fr", french.Stem}
	German     pipeline.Stemmer = generated{"de", german.Stem}
	Hungarian  pipeline.Stemmer = snowball{"hu", hungarian.Stem}
	Irish      pipeline.Stemmer = generated{"ga", irish.Stem}
	Italian    pipeline.Stemmer = generated{"it", italian.Stem}
	Norwegian  pipeline.Stemmer = snowball{"no", norwegian.Stem}
	Portuguese pipeline.Stemmer = generated{"pt", portuguese.Stem}
	Romanian   pipeline.Stemmer = generated{"ro", romanian.Stem}
	Russian    pipeline.Stemmer = yo{snowball{"ru", russian.Stem}}
	Spanish    pipeline.Stemmer = snowball{"es", spanish.Stem}
	Swedish    pipeline.Stemmer = snowball{"sv", swedish.Stem}
	Tamil      pipeline.Stemmer = generated{"ta", tamil.Stem}
	Turkish    pipeline.Stemmer = generated{"tr", turkish.Stem}
)

// All returns the stemmers of all languages.
func All() []pipeline.Stemmer {
	return []pipeline.Stemmer{
		Arabic, Danish, Dutch, Finnish, French, German, Hungarian, Irish, Italian, Norwegian, Portuguese, Romanian, Russian, Spanish, Swedish, Tamil, Turkish,
	}
}

// snowball is a stemmer of kljensen/snowball. Left to itself it does not stem the stop words of a list of its own;
// Snowball stems them.
type snowball struct {
	language string
	stem     func(word string, stopwords bool) string
}

// IsSnowball makes it a text.Snowball.
func (snowball) IsSnowball() {}

func (s snowball) Language() string        { return s.language }
func (s snowball) Stem(word string) string { return s.stem(word, true) }

// yo takes ё for е, as most texts do. The stemmer of Russian expects that.
type yo struct{ snowball }

func (y yo) Stem(word string) string { return y.snowball.Stem(strings.ReplaceAll(word, "ё", "е")) }

// generated is a stemmer of blevesearch/snowballstem, which the Snowball compiler made.
type generated struct {
	language string
	stem     func(*snowballstem.Env) bool
}

// IsSnowball makes it a text.Snowball.
func (generated) IsSnowball() {}

func (g generated) Language() string { return g.language }

func (g generated) Stem(word string) string {
	env := snowballstem.NewEnv(word)
	g.stem(env)
	return env.Current()
}
