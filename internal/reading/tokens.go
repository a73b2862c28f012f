package reading

import (
	"context"
	"fmt"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/text"
)

// Tokens is how a body is read.
type Tokens struct {
	// Language is the one that words are compared in, as text.LanguageChoice decides it, and
	// Name its English name, if it is known.
	Language, Name string
	From           text.LanguageSource
	HasStemmer     bool
	HasStopwords   bool
	Blocks         []TokenBlock
}

// TokenBlock is a block of a text and its tokens.
type TokenBlock struct {
	Text   string
	Tokens []Token
}

// Token is a token and what it is compared as.
type Token struct {
	// Start and End are its bytes in the text.
	Start, End int
	Text       string
	// Folded is what is compared where case is ignored, and Stem where stems are.
	Folded, Stem string
	// Stop says that it is a stop word.
	Stop bool
}

// TokensOf reads body as a fetched page of type contentType is read. Where contentType is empty,
// the body tells its type. The language is given if it is not empty.
func TokensOf(ctx context.Context, contentType string, body []byte, given string) (Tokens, error) {
	o, content, err := readBody(ctx, contentType, body, pipeline.View{})
	if err != nil {
		return Tokens{}, err
	}
	var t Tokens
	t.Language, t.From = text.LanguageChoice{Subscription: given, Page: o.Language, Text: text.Detect(content)}.Language()
	languages := text.NewLanguages()
	for _, l := range languages.All() {
		if l.Code == t.Language {
			t.Name = l.Name
		}
	}
	n := languages.Normalizer(t.Language)
	t.HasStemmer, t.HasStopwords = n.HasStemmer(), n.HasStopwords()
	doc := text.Analyze(content)
	for _, b := range doc.Blocks {
		block := TokenBlock{Text: content[b.Start:b.End]}
		for i := b.First; i < b.Last; i++ {
			token := doc.Text(i)
			block.Tokens = append(block.Tokens, Token{
				Start: doc.Tokens[i].Start, End: doc.Tokens[i].End, Text: token,
				Folded: n.Term(token, text.FormCase), Stem: n.Term(token, text.FormStem), Stop: n.IsStop(token),
			})
		}
		t.Blocks = append(t.Blocks, block)
	}
	return t, nil
}

// Describe says in which language t is read, and why.
func (t Tokens) Describe() string {
	s := "Language: " + t.Language
	if t.Name != "" {
		s = fmt.Sprintf("Language: %s (%s)", t.Name, t.Language)
	}
	if t.From == text.FromSubscription {
		s += ", given"
	} else {
		s += ", " + t.From.Reason()
	}
	switch {
	case !t.HasStemmer && !t.HasStopwords:
		s += "; it has neither stems nor stop words"
	case !t.HasStemmer:
		s += "; it has no stems"
	case !t.HasStopwords:
		s += "; it has no stop words"
	}
	return s
}
