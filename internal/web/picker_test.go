package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
)

const watched = `<!doctype html><html><head><title>x</title><style>p{}</style><meta http-equiv="refresh" content="0; url=https://evil.example"></head>
<body onload="alert(1)"><script>alert(2)</script><nav class="menu top">Menu</nav>
<main id="content"><h1>Shop</h1><p class="price a">95</p><p class="price">90</p><div><p>one</p><p>two</p></div>
<img src=x onerror=alert(3)><svg onload=alert(4)><text>svg</text></svg><a href="javascript:alert(5)" class="buy">Buy &lt;script&gt;</a>
<iframe src="https://evil.example"></iframe><form action="https://evil.example"><input name=q></form><p id="bad id">odd</p><p></p></main>
<template><p>hidden</p></template></body></html>`

// TestHarmless: nothing of the watched page is left but its text and plain elements, and each link chooses
// exactly the element that it stands in.
func TestHarmless(t *testing.T) {
	page, err := renderHarmless(t.Context(), watched, url.Values{"url": {"https://example.com/"}, "select": {"p.price"}, "keywords": {`"><script>`}})
	if err != nil {
		t.Fatal(err)
	}
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	original, err := html.Parse(strings.NewReader(watched))
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		switch n.Data {
		case "script", "style", "img", "svg", "iframe", "form", "input", "template", "object":
			t.Errorf("the page has the element %s", n.Data)
		}
		for _, a := range n.Attr {
			ours := n.Data == "a" || n.Data == "link" || n.Data == "html" || n.Data == "meta" && a.Key == "charset"
			if !ours && (a.Key != "class" || a.Val != "chosen") {
				t.Errorf("%s has the attribute %s=%q", n.Data, a.Key, a.Val)
			}
			if n.Data == "a" && a.Key == "href" {
				u, err := url.Parse(a.Val)
				if err != nil || u.Path != "../pick" || u.Query().Get("keywords") != `"><script>` || u.Query().Get("url") != "https://example.com/" {
					t.Errorf("a link leads to %s, %v", a.Val, err)
					continue
				}
				s, err := cascadia.ParseGroup(u.Query().Get("select"))
				if err != nil {
					t.Fatalf("%s: %v", u.Query().Get("select"), err)
				}
				all := cascadia.QueryAll(original, s)
				if len(all) != 1 {
					t.Errorf("%s matches %d elements", u.Query().Get("select"), len(all))
					continue
				}
				found[u.Query().Get("select")] = all[0].Data
			}
		}
	}
	for _, want := range []string{"#content", "nav.menu", "h1", "p.a", "a.buy", "#content > p:nth-of-type(2)", "#content > div:nth-of-type(1) > p:nth-of-type(2)"} {
		if found[want] == "" {
			t.Errorf("%s cannot be chosen: %v", want, found)
		}
	}
	if n := strings.Count(page, `class="chosen"`); n != 2 || strings.Contains(page, "hidden") || !strings.Contains(page, "Buy &lt;script&gt;") {
		t.Errorf("%d elements are marked: %s", n, page)
	}
}

// TestHarmlessIsBounded: a page with too many elements, or too deep ones, is refused with the reason, and
// one that gets too long ends with a note.
func TestHarmlessIsBounded(t *testing.T) {
	form := url.Values{"url": {"https://example.com/"}, "select": {"p:nth-of-type(2)"}}
	for _, c := range []struct{ source, says string }{
		{strings.Repeat("<z></z>", maxElements) + "<p>text", "at most 20000 can be shown"},
		{strings.Repeat("<div>", 1000) + "x", "write a selector by hand"},
	} {
		if _, err := renderHarmless(t.Context(), c.source, form); !errors.Is(err, errNoSource) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("got %v, want that %s", err, c.says)
		}
	}
	page, err := renderHarmless(t.Context(), strings.Repeat("<p>text", maxElements-10), form)
	if err != nil || len(page) > maxFrameBytes+4096 || !strings.Contains(page, "longer than can be shown") || strings.Count(page, `class="chosen"`) != 1 {
		t.Errorf("the page has %d bytes, %v", len(page), err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := renderHarmless(ended, watched, form); !errors.Is(err, errBusy) {
		t.Errorf("the request has ended: got %v", err)
	}
}

// TestFramesAtOnce: only so many pages are parsed at once.
func TestFramesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), pageTimeout)
		defer cancel()
		f := make(parseSlots, maxParsedAtOnce)
		for range maxParsedAtOnce - 1 {
			f <- struct{}{}
		}
		done, err := f.acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.acquire(ctx); !errors.Is(err, errBusy) || ctx.Err() == nil {
			t.Errorf("one more page: got %v", err)
		}
		done()
		if _, err := f.acquire(t.Context()); err != nil {
			t.Errorf("after one is done: got %v", err)
		}
	})
}

// TestPicker opens the picker, its frame, and a chosen part.
func TestPicker(t *testing.T) {
	f := &fake{source: watched}
	b := logIn(t, f, aToken)
	q := url.Values{"url": {"https://example.com/"}, "client": {"ann"}, "select": {"#content"}}.Encode()
	r, body := b.get(t, "/pick?"+q)
	src := regexp.MustCompile(`<iframe class="picker" title="The watched page" src="([^"]*)" sandbox="allow-same-origin allow-top-navigation-by-user-activation">`).FindStringSubmatch(body)
	if r.StatusCode != http.StatusOK || src == nil || !strings.Contains(body, `href="/subscribe?client=ann&amp;select=%23content&amp;url=https%3A%2F%2Fexample.com%2F"`) || !strings.Contains(body, "green tea &lt;script&gt;") {
		t.Fatalf("got %s %s", r.Status, body)
	}
	r, body = b.get(t, html.UnescapeString(src[1]))
	policy := r.Header.Get("Content-Security-Policy")
	if r.StatusCode != http.StatusOK || !strings.Contains(body, `class="chosen"`) || !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "sandbox allow-same-origin allow-top") ||
		strings.Contains(policy, "script-src") || strings.Contains(policy, "allow-scripts") {
		t.Errorf("got %s, policy %s, %s", r.Status, policy, body)
	}
	reader := logIn(t, f, "reader")
	for _, path := range []string{"/pick?" + q, "/pick/frame?" + q, "/subscribe?" + q} {
		if r, _ := reader.get(t, path); r.StatusCode != http.StatusForbidden {
			t.Errorf("a reader, %s: got %s", path, r.Status)
		}
	}
	large := logIn(t, &fake{source: strings.Repeat("<z></z>", maxElements+1)}, aToken)
	if r, body := large.get(t, "/pick?"+q); r.StatusCode != http.StatusOK || !strings.Contains(body, "at most 20000 can be shown") {
		t.Errorf("a page with too many elements: got %s %s", r.Status, body)
	}
	plain := logIn(t, new(fake), aToken)
	if r, body := plain.get(t, "/pick?"+q); r.StatusCode != http.StatusOK || !strings.Contains(body, "write a selector by hand") {
		t.Errorf("a page that is not HTML: got %s %s", r.Status, body)
	}
	if r, body := plain.get(t, "/pick/frame?"+q); r.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(body, "write a selector by hand") {
		t.Errorf("the frame of a page that is not HTML: got %s %s", r.Status, body)
	}
}

// TestHostileSelectorOfPicker: the selectors of the picker have the limits of those of subscriptions.
func TestHostileSelectorOfPicker(t *testing.T) {
	source := strings.Repeat("<div>", 400) + strings.Repeat("<p>a</p>", 19_000) + strings.Repeat("</div>", 400)
	form := url.Values{"select": {"html:has(div:has(div:has(div:has(b))))"}}
	if page, err := renderHarmless(t.Context(), source, form); err != nil || strings.Contains(page, `class="chosen"`) {
		t.Errorf("got %d bytes, %v", len(page), err)
	}
}
