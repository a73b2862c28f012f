package pipelinetest

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"
)

// receiver is a server that decodes what it gets.
type receiver struct {
	url string

	mu   sync.Mutex
	seen []received
}

type received struct {
	id     string
	texts  []string
	header http.Header
}

func newReceiver(t *testing.T, s *httpSuite) *receiver {
	t.Helper()
	r := &receiver{}
	r.url = serve(t, func(w http.ResponseWriter, req *http.Request) {
		r.take(t, s, req)
		s.Accept(w, req)
	})
	return r
}

func (r *receiver) take(t *testing.T, s *httpSuite, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		t.Errorf("reading a request: %v", err)
		return
	}
	id, texts, err := s.Decode(req.Header, body)
	if err != nil {
		t.Errorf("decoding a request: %v", err)
	}
	if id == "" && len(texts) > 0 {
		id = texts[0] // where IDs matter the text is the same
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, received{id, texts, req.Header})
}

func (r *receiver) ids() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []string
	for _, s := range r.seen {
		ids = append(ids, s.id)
	}
	return ids
}

// hostile is text that pages could hold.
var hostile = []string{
	"<!channel> <@U123> <http://evil.example|bank.example>", "</script><script>alert(1)</script>", "{{.}} {{range 9}}{{end}}",
	"%s %d %!x(MISSING) %", "a+b&c=d;e", "X-Header: a\r\nX-Injected: b\r\n\r\nbody", "nul\x00bell\x07", "turn\u202Earound\u2066",
	"\xff\xfe invalid \xc3", "\u2028\u2029", `quote " and \ and '`, "*bold* _it_ ~s~ `code` :emoji: #channel @here", "data:\x1b[31mred",
}

func (s *httpSuite) hostileText(t *testing.T) {
	if s.Decode == nil {
		t.Skip("the sink does not say how to read what it sends")
	}
	r := newReceiver(t, s)
	sink := s.sink(t, r.url)
	texts := append(slices.Clone(hostile), strings.Repeat("0123456789ä😀", 1<<16))
	for _, text := range texts {
		n := notification("H", text)
		n.Title, n.URL, n.Client, n.Diffs[0].Keyword = text, text, text, text
		if err := deliver(t.Context(), t, sink, n); err != nil {
			t.Fatalf("%.40q: %v", text, err)
		}
	}
	same := sameText
	if s.ForPeople {
		same = readableText
	}
	for i, got := range r.seen {
		if len(got.texts) != 1 || !same(got.texts[0], texts[i]) {
			t.Errorf("%.40q arrived as %.40q", texts[i], got.texts)
		}
		if got.header.Get("X-Injected") != "" {
			t.Errorf("%.40q became a header", texts[i])
		}
	}
}

// sameText reports whether got is the text of a page as it is, in valid UTF-8.
func sameText(got, text string) bool {
	// A run of invalid bytes may become one mark or one for each.
	norm := func(s string) string { return strings.ReplaceAll(s, "\uFFFD\uFFFD", "\uFFFD") }
	return norm(got) == norm(strings.ToValidUTF8(text, "\uFFFD"))
}

// readableText reports whether got holds parts of the text of a page, in valid UTF-8, with
// nothing in it that steers a screen.
func readableText(got, text string) bool {
	if !utf8.ValidString(got) || strings.ContainsFunc(got, steers) {
		return false
	}
	rest := visible(text)
	for part := range strings.SplitSeq(strings.ReplaceAll(got, "...", "…"), "…") {
		_, after, ok := strings.Cut(rest, visible(part))
		if !ok {
			return false
		}
		rest = after
	}
	return visible(got) != "" || visible(text) == ""
}

// steers reports whether r does more to a screen than appear there.
func steers(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || r >= '\u202A' && r <= '\u202E' || r >= '\u2066' && r <= '\u2069'
}

// visible is what there is to see of s, without blanks.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) && !unicode.IsSpace(r) && r != utf8.RuneError {
			return r
		}
		return -1
	}, strings.ToValidUTF8(s, ""))
}
