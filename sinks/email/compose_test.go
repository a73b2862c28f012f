package email

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	gomail "github.com/wneessen/go-mail"
	"golang.org/x/net/html"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/templates"
)

// docs/images/email.png is the HTML part of a notification, as TestHTMLPart sends it. To
// make it anew:
//
//	go test ./sinks/email -run TestHTMLPart -email.html page.html
//	chromium --headless --no-sandbox --hide-scrollbars --window-size=700,420 --screenshot=docs/images/email.png page.html
var htmlFile = flag.String("email.html", "", "write the HTML part of a notification to `FILE`")

// parsedMessage is a message as a mail program reads it.
type parsedMessage struct {
	header mail.Header
	parts  map[string]string // by media type
}

// subject decodes the subject, as mail programs do.
func (r parsedMessage) subject(t *testing.T) string {
	t.Helper()
	s, err := new(mime.WordDecoder).DecodeHeader(r.header.Get("Subject"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// parseMessage reads a message.
func parseMessage(t testing.TB, body []byte) parsedMessage {
	t.Helper()
	m, err := mail.ReadMessage(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r := parsedMessage{m.Header, make(map[string]string)}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	if kind != "multipart/alternative" {
		b, err := io.ReadAll(quotedprintable.NewReader(m.Body))
		if err != nil {
			t.Fatal(err)
		}
		r.parts[kind] = string(b)
		return r
	}
	for parts := multipart.NewReader(m.Body, params["boundary"]); ; {
		p, err := parts.NextPart() // decodes quoted-printable
		if errors.Is(err, io.EOF) {
			return r
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(p)
		if err != nil {
			t.Fatal(err)
		}
		kind, _, err := mime.ParseMediaType(p.Header.Get("Content-Type"))
		if err != nil {
			t.Fatal(err)
		}
		r.parts[kind] = string(b)
	}
}

// deliverAll delivers list to a real server over STARTTLS, and returns what came.
func deliverAll(ctx context.Context, t *testing.T, alter func(*Config), list ...pipeline.Notification) []parsedMessage {
	t.Helper()
	cert, pool := newTrustedCert(t)
	m := newMailServer(t, false, cert)
	c := withLogin(unencryptedConfig(m.host, m.port), StartTLS)
	if alter != nil {
		alter(&c)
	}
	e := newEmail(t, c, pool)
	e.now = func() time.Time { return time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC) }
	for _, n := range list {
		if err := e.Deliver(ctx, n); err != nil {
			t.Fatal(err)
		}
	}
	var got []parsedMessage
	for _, l := range m.messages() {
		if l.from != "vokter@sender.example" || l.to != "ann@recipient.example" {
			t.Errorf("from %q to %q", l.from, l.to)
		}
		got = append(got, parseMessage(t, l.body))
	}
	if len(got) != len(list) {
		t.Fatalf("%d messages came, want %d", len(got), len(list))
	}
	return got
}

func TestHeader(t *testing.T) {
	got := deliverAll(t.Context(), t, func(c *Config) { c.SubjectPrefix = "[vokter]" }, sample())[0]
	for name, want := range map[string]string{
		"From": `"Vokter" <vokter@sender.example>`, "To": "<ann@recipient.example>", "Date": "Sat, 03 Jan 2026 00:00:00 +0000",
		"Message-ID": "<0123456789ABCDEFGHIJKLMNOP@sender.example>", "Auto-Submitted": "auto-generated", "Precedence": "bulk",
		"List-Id": "<vokter.sender.example>", "Reply-To": "",
		"X-Auto-Response-Suppress": "All", "List-Unsubscribe": "", "List-Unsubscribe-Post": "",
		"Subject": "[vokter] added: argus; removed: zeus - Argus Panoptes",
	} {
		if g := got.header.Get(name); g != want {
			t.Errorf("%s: got %q, want %q", name, g, want)
		}
	}
	if g := got.header.Get("X-Mailer"); !strings.HasPrefix(g, "vokter ") {
		t.Errorf("sent by %q", g)
	}
}

// TestOwnHeaders are those that the configuration gives.
func TestOwnHeaders(t *testing.T) {
	h := deliverAll(t.Context(), t, func(c *Config) {
		c.ReplyTo, c.ListID = "The Team <team@recipient.example>", "Page Alerts <alerts.sender.example>"
		c.Headers = map[string]string{"X-Priority": "1", "x-note": "größer"}
	}, sample())[0].header
	for name, want := range map[string]string{
		"Reply-To": `"The Team" <team@recipient.example>`, "List-Id": `"Page Alerts" <alerts.sender.example>`,
		"X-Priority": "1", "X-Note": "=?UTF-8?q?gr=C3=B6=C3=9Fer?=", "Message-ID": "<0123456789ABCDEFGHIJKLMNOP@sender.example>",
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestTextPart(t *testing.T) {
	got := deliverAll(t.Context(), t, nil, sample())[0].parts["text/plain"]
	for _, want := range []string{
		"added: argus; removed: zeus\r\nArgus Panoptes\r\nhttps://example.com/argus\r\n",
		"+ argus: In the 5th century and later, Argus' wakeful alertness ...", `- zeus: ... Zeus sent "Hermes" & others ...`,
		"\r\n\r\nNotification 0123456789ABCDEFGHIJKLMNOP, 2 Jan 2026 03:04:05 UTC\r\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}

func TestHTMLPart(t *testing.T) {
	n := sample()
	n.Diffs = append(n.Diffs, pipeline.Diff{Event: pipeline.Removed, Keyword: "out of stock", Text: "Out of stock: <script>alert(1)</script> & more",
		Snippet: "The statue of Argus. Out of stock: <script>alert(1)</script> & more. Ships within three weeks ...", Offset: 900})
	got := deliverAll(t.Context(), t, nil, n)[0].parts["text/html"]
	for _, want := range []string{
		`<a href="https://example.com/argus" style="color:#0969da">example.com/argus</a>`,
		"later, <b>Argus</b>&#39; wakeful alertness", "<del><b>Zeus</b></del> sent &#34;Hermes&#34; &amp; others",
		"<del><b>Out of stock</b></del><del>: &lt;script&gt;alert(1)&lt;/script&gt; &amp; more</del>. Ships",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if *htmlFile != "" {
		if err := os.WriteFile(*htmlFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSameNotificationTwice(t *testing.T) {
	got := deliverAll(t.Context(), t, nil, sample(), sample())
	for _, name := range []string{"Message-ID", "References", "Subject"} {
		if a, b := got[0].header.Get(name), got[1].header.Get(name); a != b || a == "" {
			t.Errorf("%s: first %q, then %q", name, a, b)
		}
	}
}

// attempt is one for a document.
type attempt struct {
	pipeline.Attempt
	document string
	degraded []string
	note     string
}

func (a *attempt) Document() string       { return a.document }
func (a *attempt) Note() string           { return a.note }
func (a *attempt) SetNote(note string)    { a.note = note }
func (a *attempt) Degraded(reason string) { a.degraded = append(a.degraded, reason) }

func TestThreads(t *testing.T) {
	root := func(document string, n pipeline.Notification) string {
		ctx := t.Context()
		if document != "" {
			ctx = pipeline.WithAttempt(ctx, &attempt{document: document})
		}
		h := deliverAll(ctx, t, nil, n)[0].header
		if a, b := h.Get("References"), h.Get("In-Reply-To"); a != b {
			t.Errorf("References %q, In-Reply-To %q", a, b)
		}
		return h.Get("References")
	}
	n := sample()
	first := root("d1", n)
	if !strings.HasSuffix(first, "@sender.example>") || strings.Contains(first, n.ID) {
		t.Errorf("the root is %q", first)
	}
	later, other := n, n
	later.ID, later.Time, later.Diffs = "LATER", n.Time.Add(20*time.Hour), n.Diffs[:1]
	if got := root("d1", later); got != first {
		t.Errorf("%q on the same day, want %q", got, first)
	}
	later.Time = n.Time.Add(21 * time.Hour)
	other.URL = "https://example.com/other"
	roots := map[string]bool{first: true, root("d1", later): true, root("d2", n): true, root("", n): true, root("", other): true}
	if len(roots) != 5 {
		t.Errorf("the next day, another document and other pages have the roots %v, want five", roots)
	}
	health := pipeline.Notification{ID: "H", Type: pipeline.NotificationTypeHealth, Status: "overdue", Time: n.Time,
		Health: &pipeline.Health{Event: pipeline.HealthOverdue, Count: 3}}
	if got := root("", health); got != "" {
		t.Errorf("an event of the process is in the thread %q", got)
	}
}

func TestUnsubscribe(t *testing.T) {
	for raw, post := range map[string]string{
		"mailto:off@example.com?subject=off": "", "http://example.com/off": "", "https://example.com/off?t=a,b": "List-Unsubscribe=One-Click",
	} {
		h := deliverAll(t.Context(), t, func(c *Config) { c.ListUnsubscribe = raw }, sample())[0].header
		if got, want := h.Get("List-Unsubscribe"), "<"+raw+">"; got != want {
			t.Errorf("List-Unsubscribe %q, want %q", got, want)
		}
		if got := h.Get("List-Unsubscribe-Post"); got != post {
			t.Errorf("%s: List-Unsubscribe-Post %q, want %q", raw, got, post)
		}
	}
}

func TestTemplates(t *testing.T) {
	n := sample()
	n.Title = `<b a="b">{{.url}}</b>`
	for _, tt := range []struct {
		text, html string
		want       map[string]string
	}{
		{"{{.title}} changed", "", map[string]string{"text/plain": "<b a=\"b\">{{.url}}</b> changed\r\n"}},
		{"", "<p>{{.title}}</p>", map[string]string{"text/html": "<p>&lt;b a=&#34;b&#34;&gt;{{.url}}&lt;/b&gt;</p>\r\n"}},
		{"a", "<p>b</p>", map[string]string{"text/plain": "a\r\n", "text/html": "<p>b</p>"}},
	} {
		got := deliverAll(t.Context(), t, func(c *Config) { c.Template, c.TemplateHTML = templates.New(tt.text), templates.New(tt.html) }, n)[0].parts
		if fmt.Sprint(got) != fmt.Sprint(tt.want) {
			t.Errorf("%q and %q: got %q, want %q", tt.text, tt.html, got, tt.want)
		}
	}
	a := &attempt{}
	got := deliverAll(pipeline.WithAttempt(t.Context(), a), t, func(c *Config) { c.Template = templates.New("{{.health.event}}") }, n)[0].parts
	if len(got) != 2 || len(a.degraded) != 1 {
		t.Errorf("a template that fails gives %q, told as %q; want the built-in parts, told once", got, a.degraded)
	}
}

// TestLongSubjects: a subject begins in the first line of its field, whatever its letters are, and is read as it was.
func TestLongSubjects(t *testing.T) {
	for _, subject := range []string{
		"Änderung: in stock", strings.Repeat("日本語", 40), "Größe " + strings.Repeat("of many plain words ", 6) + "here",
		strings.Repeat("plain words in front ", 5) + "größer", "größer als  zwei Blanks und " + strings.Repeat("ä b ", 30) + "c", strings.Repeat("🦉", 50), "plain",
	} {
		msg := gomail.NewMsg()
		msg.Subject(encodeSubject(subject))
		var b strings.Builder
		if _, err := msg.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.String(), "Subject:\r\n") || strings.Contains(b.String(), "Subject: \r\n") {
			t.Errorf("%q begins in the second line: %q", subject, b.String())
		}
		m, err := mail.ReadMessage(strings.NewReader(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject")); got != subject || err != nil {
			t.Errorf("%q is read as %q, %v", subject, got, err)
		}
	}
}

// TestSubjectTemplate: it is one line, whatever the template and the page hold, and one
// that fails leaves the subject as it is without one.
func TestSubjectTemplate(t *testing.T) {
	n := sample()
	n.Title = "a\r\nBcc: evil@example.com =?utf-8?q?x?="
	builtIn := deliverAll(t.Context(), t, func(c *Config) { c.SubjectPrefix = "[v]" }, n)[0].header.Get("Subject")
	for source, want := range map[string]string{
		"{{.host}}:\n\n{{.title}}": "[v] example.com: a Bcc: evil@example.com = ?utf-8?q?x?=",
		"{{.health.event}}":        builtIn,
	} {
		a := &attempt{}
		got := deliverAll(pipeline.WithAttempt(t.Context(), a), t, func(c *Config) {
			c.SubjectPrefix, c.Subject = "[v]", templates.New(source)
		}, n)[0].header.Get("Subject")
		if got != want || (len(a.degraded) > 0) != (want == builtIn) {
			t.Errorf("%s: got %q, degraded for %q, want %q", source, got, a.degraded, want)
		}
	}
}

// hostileTexts is text that pages could hold.
var hostileTexts = []string{
	"<!channel> <http://evil.example|bank.example>", "</script><script>alert(1)</script><img src=x onerror=alert(1)>", "{{.}} {{range 9}}{{end}}",
	"%s %d %!x(MISSING) %", "a\r\nBcc: evil@example.com\r\n\r\nbody", "a\nX-Injected: b", "\r\n.\r\nMAIL FROM:<evil@example.com>\r\n", ".\n..\n",
	"=?utf-8?q?=0D=0AX-Injected:_b?=", "=?utf-8?b?4oCu?=", "nul\x00bell\x07", "turn\u202Earound\u2066", "\xff\xfe invalid \xc3", "\u2028\u2029",
	`quote " and \ and '`, "--boundary--", "javascript:alert(1)", strings.Repeat("0123456789ä😀", 1<<16), strings.Repeat("x", 1<<20),
}

func TestHostileText(t *testing.T) {
	var list []pipeline.Notification
	for _, text := range hostileTexts {
		n := sample()
		n.Title, n.URL, n.Client, n.Language, n.Reason = text, text, text, text, text
		for i := range n.Diffs {
			n.Diffs[i].Text, n.Diffs[i].Snippet, n.Diffs[i].Keyword = text, text, text
		}
		list = append(list, n)
	}
	for i, got := range deliverAll(t.Context(), t, nil, list...) {
		name := fmt.Sprintf("%.40q", hostileTexts[i])
		for _, h := range []string{"X-Injected", "Bcc"} {
			if v := got.header.Get(h); v != "" {
				t.Errorf("%s became the header %s: %s", name, h, v)
			}
		}
		subject := got.subject(t)
		if strings.ContainsAny(subject, "\r\n\x00\u202E\u2028") || utf8.RuneCountInString(subject) > 250 {
			t.Errorf("%s became the subject %q", name, subject)
		}
		for kind, part := range got.parts {
			if !utf8.ValidString(part) || strings.ContainsAny(part, "\x00\x07\u202E\u2066") || len(part) > 102_000 {
				t.Errorf("%s: %d bytes of %s with what steers: %.200q", name, len(part), kind, part)
			}
		}
		if want := strings.TrimSpace(strings.Fields(hostileTexts[i] + " -")[0]); len(want) < 40 && utf8.ValidString(want) && !strings.ContainsAny(want, "\x00\u202E") {
			if !strings.Contains(got.parts["text/plain"], want) {
				t.Errorf("%s: %q is not in the text", name, want)
			}
		}
		checkNoMarkup(t, name, got.parts["text/html"])
	}
}

// checkNoMarkup fails the test if a page has put elements or links into the HTML part.
func checkNoMarkup(t *testing.T, name, page string) {
	t.Helper()
	ours := map[string]bool{}
	for _, e := range strings.Fields("html head meta title body div h1 p a b del blockquote ul li") {
		ours[e] = true
	}
	for z := html.NewTokenizer(strings.NewReader(page)); z.Next() != html.ErrorToken; {
		token := z.Token()
		if token.Type != html.StartTagToken && token.Type != html.SelfClosingTagToken {
			continue
		}
		if !ours[token.Data] {
			t.Errorf("%s became the element %s", name, token)
		}
		for _, a := range token.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "href" && !strings.HasPrefix(a.Val, "http") {
				t.Errorf("%s became %s", name, token)
			}
		}
	}
}

func TestIDs(t *testing.T) {
	for _, id := range []string{"", "a b", "a>b", "a@b", "a\r\nb", strings.Repeat("x", 300)} {
		n := sample()
		n.ID = id
		err := newEmail(t, unencryptedConfig("127.0.0.1", 1)).Deliver(t.Context(), n)
		if class, _ := failure.ClassOf(err); err == nil || class != failure.ClassPermanent {
			t.Errorf("ID %.20q: got %v, want a permanent error", id, err)
		}
	}
}

func TestHealthEvent(t *testing.T) {
	n := pipeline.Notification{
		Status: "overdue", ID: "H", Type: pipeline.NotificationTypeHealth, Time: sample().Time, Diffs: []pipeline.Diff{},
		Health: &pipeline.Health{Event: pipeline.HealthOverdue, Count: 2, Reason: "<b>slow</b>", URLs: []string{"https://a.example/", "https://b.example/"}},
	}
	got := deliverAll(t.Context(), t, nil, n)[0]
	if s := got.subject(t); s != "overdue" {
		t.Errorf("the subject is %q", s)
	}
	for _, want := range []string{"<h1 ", "checks are not made in time (pages: 2): &lt;b&gt;slow&lt;/b&gt;", "<li>a.example/</li><li>b.example/</li>"} {
		if !strings.Contains(got.parts["text/html"], want) {
			t.Errorf("%q is not in\n%s", want, got.parts["text/html"])
		}
	}
}

// TestManyDifferences checks that a message stays below what mail programs cut, and says
// what is missing.
func TestManyDifferences(t *testing.T) {
	n := sample()
	n.Diffs = nil
	for i := range 1000 {
		text := fmt.Sprintf("Argus %d %s", i, strings.Repeat("百眼の巨人 ", 100))
		n.Diffs = append(n.Diffs, pipeline.Diff{Event: pipeline.Added, Keyword: "argus", Text: text, Snippet: text, Offset: i * 1000})
	}
	for kind, part := range deliverAll(t.Context(), t, nil, n)[0].parts {
		if len(part) > 102_000 || !strings.Contains(part, "Argus</b> 1") && !strings.Contains(part, "Argus 1") {
			t.Errorf("%s: %d bytes: %.300s", kind, len(part), part)
		}
		if shown := strings.Count(part, "Argus") - 1; !strings.Contains(part, fmt.Sprintf("and %d more", 1000-shown)) {
			t.Errorf("%s: %d differences are shown, and nothing says how many are not", kind, shown)
		}
	}
}
