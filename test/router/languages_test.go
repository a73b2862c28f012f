package router_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/text/stemmers"
)

// TestStemsOfEveryLanguage watches a page in each language that has stems. Its new text holds
// the keyword in another form, which only the subscription with stems is told of.
func TestStemsOfEveryLanguage(t *testing.T) {
	t.Parallel()
	inflected := map[string]struct{ keyword, text string }{
		"ar": {"مكتبة", "زرنا المكتبات القديمة"},
		"da": {"hus", "Husene blev solgt"},
		"de": {"Haus", "Die Häuser sind offen"},
		"en": {"house", "The houses are open"},
		"es": {"canción", "Suenan las canciones"},
		"fi": {"talo", "Taloissa asuu perhe"},
		"fr": {"cheval", "Les chevaux courent"},
		"ga": {"bean", "Bhí an bhean anseo"},
		"hu": {"ház", "A házakban laknak"},
		"it": {"amico", "Gli amici arrivano"},
		"nl": {"koning", "De koningen kwamen"},
		"no": {"barn", "Barnet leser"},
		"pt": {"menino", "Os meninos cantam"},
		"ro": {"casă", "Casele sunt vechi"},
		"ru": {"книга", "Читал книгами"},
		"sv": {"flicka", "Flickorna läser"},
		"ta": {"வீடு", "வீடுகள் பெரியவை"},
		"tr": {"kitap", "Kitaplar geldi"},
	}
	pages := map[string]string{}
	var subscriptions []pipeline.Subscription
	for lang, c := range inflected {
		pages["/"+lang] = fmt.Sprintf(`<html lang="%s"><p>%s</p></html>`, lang, c.text)
		subscriptions = append(subscriptions,
			pipeline.Subscription{URL: "/" + lang, Client: "stems", Keywords: []string{c.keyword}, Stem: true},
			pipeline.Subscription{URL: "/" + lang, Client: "plain", Keywords: []string{c.keyword}})
	}
	told := afterChange(t, pages, subscriptions)
	table, err := os.ReadFile("../../docs/text.md")
	if err != nil {
		t.Fatal(err)
	}
	for lang, c := range inflected {
		if row := fmt.Sprintf("| `%s` | %s | %s | yes | no |\n", lang, c.keyword, c.text); !strings.Contains(string(table), row) {
			t.Errorf("docs/text.md lacks the row %s", row)
		}
		if n := told["stems /"+lang]; len(n) != 1 || n[0].Language != lang || len(n[0].Diffs) != 1 || n[0].Diffs[0].Keyword != c.keyword {
			t.Errorf("%s with stems: got %+v, want one notification about %s", lang, n, c.keyword)
		}
		if n := told["plain /"+lang]; len(n) != 0 {
			t.Errorf("%s without stems: got %+v", lang, n)
		}
	}
}

// TestStemmerThatWasNotGiven: who names a language has its stems or an error, and who does not a warning.
func TestStemmerThatWasNotGiven(t *testing.T) {
	log := &lockedBuffer{}
	quiet := func(cfg *vokter.Config, _ string) {
		cfg.Stemmers, cfg.Logger = nil, slog.New(slog.NewTextHandler(log, nil))
	}
	pages := map[string]string{"/": `<html lang="de"><p>Die Häuser</p></html>`, "/other": `<html lang="de"><p>Die Häuser</p></html>`}
	told := afterChange(t, pages, []pipeline.Subscription{
		{URL: "/", Client: "c", Keywords: []string{"Haus"}, Stem: true}, {URL: "/other", Client: "c", Keywords: []string{"Haus"}, Stem: true},
	}, quiet)
	if n := strings.Count(log.String(), "whose stemmer was not given"); len(told) > 0 || n != 1 || !strings.Contains(log.String(), "language=de") {
		t.Errorf("got %+v, and %d warnings in %s", told, n, log)
	}
	german := pipeline.Subscription{URL: "https://example.com/", Keywords: []string{"Haus"}, Stem: true, Language: "de-AT", Sinks: []string{"box"}}
	cfg := vokter.Config{Sinks: map[string]pipeline.Sink{"box": newMailbox()}, Subscriptions: []pipeline.Subscription{german}}
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), `stem: no stemmer of "de-AT" was given`) {
		t.Errorf("New: got %v", err)
	}
	cfg.Stemmers = []pipeline.Stemmer{stemmers.German}
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
	cfg.Stemmers, cfg.Subscriptions = nil, nil
	r, stop := startRouter(t, cfg)
	defer stop()
	if err := r.Subscribe(t.Context(), german); err == nil || !strings.Contains(err.Error(), "stemmers.All()") {
		t.Errorf("Subscribe: got %v", err)
	}
	german.Interval = pipeline.Never
	r.RegisterStemmer(stemmers.German)
	if err := r.Subscribe(t.Context(), german); err != nil {
		t.Errorf("with a stemmer that was registered: %v", err)
	}
}

// TestShortPagesWithoutALanguage watches pages that are too short for their language to be
// detected: the fallback counts.
func TestShortPagesWithoutALanguage(t *testing.T) {
	pages := map[string]string{}
	var subscriptions []pipeline.Subscription
	for i, text := range []string{
		"god house", "God house", "GOD HOUSE", "A god house.", "house god", "the house of a god", "God's house", "gods and houses",
		"The house of the gods is open", "god house in town", "A god bought a big house near the sea.", "Status: god house",
	} {
		path := fmt.Sprintf("/%d", i)
		pages[path] = "<p>" + text + "</p>"
		subscriptions = append(subscriptions, pipeline.Subscription{
			URL: path, Client: "c", Keywords: []string{"House of the Gods"}, Stem: true, FilterStopwords: true})
	}
	told := afterChange(t, pages, subscriptions)
	for path, page := range pages {
		if n := told["c "+path]; len(n) != 1 || n[0].Language != "en" {
			t.Errorf("%s: got %+v, want one notification in en", page, n)
		}
	}
}

// TestWhatDecidesTheLanguage has one page for each thing that decides in which language it is
// compared. Their new texts are too short for detection.
func TestWhatDecidesTheLanguage(t *testing.T) {
	t.Parallel()
	const house = `<p class=status>Die Häuser</p>`
	const story = `<p>Jeden Morgen gingen die Kinder durch den alten Wald zur Schule, und am Abend kamen sie müde zurück.</p>`
	pages := map[string]string{
		"/page":      `<html lang="de">` + house,
		"/document":  `<html lang="sv">` + house,
		"/both":      `<html lang="sv">` + house,
		"/selected":  story + house,
		"/nearest":   `<html lang="sv"><div lang="de"><section>` + house + `</section></div><p>Huset</p>`,
		"/unlabeled": `<html lang="de"><div lang="sv">Huset</div>` + house,
	}
	var subscriptions []pipeline.Subscription
	for path := range pages {
		s := pipeline.Subscription{URL: path, Client: "c", Keywords: []string{"Haus"}, Stem: true}
		switch path {
		case "/both":
			s.Language = "de"
		case "/selected", "/nearest", "/unlabeled":
			s.Select = []pipeline.Selector{{CSS: ".status"}}
		}
		subscriptions = append(subscriptions, s)
	}
	told := afterChange(t, pages, subscriptions, func(cfg *vokter.Config, site string) {
		cfg.Documents = []vokter.Document{{URL: site + "/document", Keep: true, Language: "de"}, {URL: site + "/both", Keep: true, Language: "nl"}}
	})
	for path := range pages {
		if n := told["c "+path]; len(n) != 1 || len(n[0].Diffs) != 1 || n[0].Diffs[0].Keyword != "Haus" {
			t.Errorf("%s: got %+v, want one notification about Haus", path, n)
		}
	}
	for fallback, want := range map[string]int{"": 0, "de": 1} {
		told := afterChange(t, map[string]string{"/": house}, []pipeline.Subscription{{URL: "/", Client: "c", Keywords: []string{"Haus"}, Stem: true}},
			func(cfg *vokter.Config, _ string) { cfg.Language = fallback })
		if n := told["c /"]; len(n) != want {
			t.Errorf("fallback %q: got %+v, want %d", fallback, n, want)
		}
	}
}

func TestInvalidLanguages(t *testing.T) {
	err := vokter.Config{Language: "german", Documents: []vokter.Document{{URL: "https://example.com/", Keep: true, Language: "x y"}}}.Validate()
	for _, want := range []string{`language: "german" is not a language tag; write one such as en or pt-BR`, `document 1 (https://example.com/): language: "x y" is not`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// afterChange watches pages, by path, that stood empty at first, and returns the notifications by
// client and path.
func afterChange(t *testing.T, pages map[string]string, subscriptions []pipeline.Subscription, configure ...func(cfg *vokter.Config, site string)) map[string][]pipeline.Notification {
	t.Helper()
	var changed atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		body := "<p class=status>-1-</p>"
		if changed.Load() {
			body = pages[r.URL.Path]
		}
		fmt.Fprint(w, body)
	}))
	t.Cleanup(server.Close)
	m := newMailbox()
	cfg := watchConfig(&site{Server: server}, m, t.TempDir())
	cfg.Subscriptions, cfg.Stemmers = subscriptions, stemmers.All()
	for i := range cfg.Subscriptions {
		cfg.Subscriptions[i].URL = server.URL + cfg.Subscriptions[i].URL
		cfg.Subscriptions[i].Sinks = []string{"box"}
	}
	for _, c := range configure {
		c(&cfg, server.URL)
	}
	runToEnd(t, cfg)
	changed.Store(true)
	runToEnd(t, cfg)
	told := map[string][]pipeline.Notification{}
	for _, n := range m.take() {
		k := n.Client + " " + strings.TrimPrefix(n.URL, server.URL)
		told[k] = append(told[k], n)
	}
	return told
}
