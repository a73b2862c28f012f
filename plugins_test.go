package vokter

import (
	"context"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
)

// shouting reads plain text in capitals.
type shouting struct{}

func (shouting) ContentTypes() []string { return []string{"text/html"} }

func (shouting) Read(_ context.Context, raw pipeline.Raw, _ pipeline.View) (pipeline.Text, error) {
	return pipeline.Text{Content: strings.ToUpper(string(raw.Body)) + "\n"}, nil
}

func TestReadersComeAndGoWhileItRuns(t *testing.T) {
	s, m := newSite(t, "old"), newMailbox()
	cfg := watching(s, m, "", "NEW")
	cfg.Checks = 0
	cfg.Subscriptions[0].IgnoreCase = false
	cfg.Expire.After = -1 // it fails at once again and again, and must not end before the test looks
	r, stop := lives(t, cfg)
	defer stop()
	waitFor(t, func() bool { return r.Summary().Versions == 1 })
	r.RegisterReader(shouting{})
	waitFor(t, func() bool { return r.Summary().Checks > 1 })
	s.set("new")
	<-m.came
	if got := m.take(); len(got) == 0 || got[0].Diffs[0].Text != "NEW" {
		t.Errorf("got %+v, want the text of the registered reader", got)
	}
	r.UnregisterReader("text/html")
	s.set("unread")
	waitFor(t, func() bool {
		d := r.Summary().Documents
		return len(d) == 1 && strings.HasPrefix(d[0].LastError, "there is no reader for pages of type \"text/html\"")
	})
}

// first stems a word to its first letter.
type first struct{}

func (first) Language() string        { return "en" }
func (first) Stem(word string) string { return word[:1] }

func TestStemmersComeAndGo(t *testing.T) {
	s, m, dir := newSite(t, "<p>nothing here</p>"), newMailbox(), t.TempDir()
	cfg := watching(s, m, dir, "argus")
	cfg.Subscriptions[0].Stem, cfg.Subscriptions[0].Language = true, "en"
	runs(t, cfg)
	s.set("<p>nothing here</p><p>apples</p>")
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.RegisterStemmer(first{})
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := m.take(); len(got) != 1 || got[0].Diffs[0].Text != "apples" {
		t.Errorf("got %+v, want apples, which the registered stemmer takes for argus", got)
	}
}
