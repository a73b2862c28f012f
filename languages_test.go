package vokter

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vokter/vokter/pipeline"
)

// TestStemsOfEveryLanguage watches a page in each language that has stems. Its new text holds
// the keyword in another form, which only the subscription with stems is told of.
func TestStemsOfEveryLanguage(t *testing.T) {
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
			pipeline.Subscription{URL: "/" + lang, Client: "plain", Keywords: []string{c.keyword}, IgnoreCase: true})
	}
	told := afterChange(t, pages, subscriptions)
	for lang, c := range inflected {
		if n := told["stems /"+lang]; len(n) != 1 || n[0].Language != lang || len(n[0].Diffs) != 1 || n[0].Diffs[0].Keyword != c.keyword {
			t.Errorf("%s with stems: got %+v, want one notification about %s", lang, n, c.keyword)
		}
		if n := told["plain /"+lang]; len(n) != 0 {
			t.Errorf("%s without stems: got %+v", lang, n)
		}
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
			URL: path, Client: "c", Keywords: []string{"House of the Gods"}, Stem: true, FilterStopwords: true, IgnoreCase: true})
	}
	told := afterChange(t, pages, subscriptions)
	for path, page := range pages {
		if n := told["c "+path]; len(n) != 1 || n[0].Language != "en" {
			t.Errorf("%s: got %+v, want one notification in en", page, n)
		}
	}
}

// afterChange watches pages, by path, that stood empty at first, and returns the notifications by
// client and path.
func afterChange(t *testing.T, pages map[string]string, subscriptions []pipeline.Subscription) map[string][]pipeline.Notification {
	t.Helper()
	var changed atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		body := "<p>-1-</p>"
		if changed.Load() {
			body = pages[r.URL.Path]
		}
		fmt.Fprint(w, body)
	}))
	t.Cleanup(server.Close)
	m := newMailbox()
	cfg := watching(&site{Server: server}, m, t.TempDir())
	cfg.Subscriptions = subscriptions
	for i := range cfg.Subscriptions {
		cfg.Subscriptions[i].URL = server.URL + cfg.Subscriptions[i].URL
		cfg.Subscriptions[i].Sinks = []string{"box"}
	}
	runs(t, cfg)
	changed.Store(true)
	runs(t, cfg)
	told := map[string][]pipeline.Notification{}
	for _, n := range m.take() {
		k := n.Client + " " + strings.TrimPrefix(n.URL, server.URL)
		told[k] = append(told[k], n)
	}
	return told
}
