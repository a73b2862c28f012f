package stdout

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/registry"
)

var update = flag.Bool("update", false, "write the golden files anew")

func samples() []pipeline.Notification {
	at := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	ok := pipeline.Notification{
		Status: pipeline.StatusOK, URL: "https://user:password@example.com/item/7?a=b#c", ID: "A", Type: "notification",
		Time: at, Client: "shop", Version: 7, Title: "Zeus, the god of thunder", Language: "en", Change: "C",
		Diffs: []pipeline.Diff{
			{Event: pipeline.Added, Keyword: "out of stock", Text: "Out of", Snippet: "Zeus. Out of stock.", Offset: 6},
			{Event: pipeline.Added, Keyword: "stock", Text: "Out of", Snippet: "Zeus. Out of stock.", Offset: 6},
			{Event: pipeline.Removed, Keyword: "in stock", Text: "In", Snippet: "Zeus. In stock.", Offset: 6},
			{Event: pipeline.Added, Keyword: "argus", Text: "Argus", Snippet: strings.Repeat("before ", 100) + "Argus" + strings.Repeat(" behind", 100)},
			{Event: pipeline.Removed, Keyword: "long", Text: "long " + strings.Repeat("text ", 100) + "end", Snippet: "... long " + strings.Repeat("text ", 100) + "end ..."},
			{Event: pipeline.Added, Keyword: "alone", Text: "elsewhere", Snippet: ""},
		},
		Truncated: true, Omitted: 7,
	}
	hostile := pipeline.Notification{
		Status: pipeline.StatusOK, URL: "https://example.com/\x1b]0;owned\x07", ID: "B", Type: "notification", Time: at, Client: "default",
		Title: "\x1b[2J\x1b[31mred\r\n\u202Eevil\u2066 \u009b31m",
		Diffs: []pipeline.Diff{{
			Event: pipeline.Added, Keyword: "a\x1b[1mb", Text: "text\twith\ncontrols\x00\x7f\u0085", Snippet: "... text\twith\ncontrols\x00\x7f\u0085 \U000E0041\uFEFF\u2028 \xff ...",
		}},
	}
	health := func(h pipeline.Health) pipeline.Notification {
		return pipeline.Notification{Status: string(h.Event), URL: h.URL, ID: "H", Type: pipeline.NotificationTypeHealth, Time: at, Health: &h}
	}
	hook := &pipeline.Receiver{Sink: "hook"}
	return []pipeline.Notification{
		ok, hostile,
		{Status: pipeline.StatusTimeout, URL: "http://gone.example/", ID: "T", Type: "notification", Time: at, Client: "default"},
		{Status: pipeline.StatusTimeout, URL: "http://gone.example/", ID: "T", Type: "notification", Time: at, Client: "default", Reason: "given up after 10 failed checks in a row; the last one: the server\x1b[1m answered 500\n"},
		health(pipeline.Health{Event: pipeline.HealthFailing, URL: "http://gone.example/", Reason: "refused", Count: 3, Since: at.Add(-time.Hour)}),
		health(pipeline.Health{Event: pipeline.HealthRecovered, URL: "http://gone.example/", Count: 12, Since: at.Add(-time.Hour)}),
		health(pipeline.Health{Event: pipeline.HealthReceiverExpired, Receiver: hook, Reason: "410 Gone\u202E"}),
		health(pipeline.Health{Event: pipeline.HealthOverdue, Count: 7, URLs: []string{"http://a.example/", "http://b.example/1", "http://b.example/2", "http://b.example/3", "http://b.example/4", "http://b.example/5", "http://b.example/6"}}),
		health(pipeline.Health{Event: "of_tomorrow\x1b[2J"}),
	}
}

func TestGolden(t *testing.T) {
	for name, o := range map[string]Config{
		"text.golden":  {Format: FormatText, Location: time.UTC},
		"color.golden": {Format: FormatText, Color: ColorAlways, Location: time.UTC},
		"json.golden":  {Format: FormatJSON},
	} {
		var b bytes.Buffer
		s := newSink(t, &b, o)
		for _, n := range samples() {
			if err := s.Deliver(t.Context(), n); err != nil {
				t.Fatal(err)
			}
		}
		file := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(b.Bytes(), want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, b.Bytes(), want)
		}
	}
}

// TestNothingSteersTheTerminal: whatever the page says, only our own styles do.
func TestNothingSteersTheTerminal(t *testing.T) {
	for _, o := range []Config{{Format: FormatText}, {Format: FormatText, Color: ColorAlways}, {Format: FormatJSON}} {
		var b bytes.Buffer
		s := newSink(t, &b, o)
		for _, n := range samples() {
			if err := s.Deliver(t.Context(), n); err != nil {
				t.Fatal(err)
			}
		}
		out := b.String()
		for _, style := range []string{reset, bold, dim, green, red, strike, yellow} {
			out = strings.ReplaceAll(out, style, "")
		}
		if o.Color != ColorAlways && out != b.String() {
			t.Errorf("%+v: styles without colour", o)
		}
		for _, r := range out {
			if r != '\n' && render.Steers(r) {
				t.Errorf("%+v: %U is in the output", o, r)
			}
		}
		if !utf8.ValidString(out) {
			t.Errorf("%+v: the output is not valid UTF-8", o)
		}
	}
}

func TestJSONIsTheDocumentedBody(t *testing.T) {
	var b bytes.Buffer
	s := newSink(t, &b, Config{})
	for _, n := range samples() {
		if err := s.Deliver(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	for i, n := range samples() {
		if n.Diffs == nil {
			n.Diffs = []pipeline.Diff{}
		}
		for j := range n.Diffs {
			n.Diffs[j].Snippet = strings.ToValidUTF8(n.Diffs[j].Snippet, "\uFFFD")
		}
		var got pipeline.Notification
		if err := json.Unmarshal([]byte(lines[i]), &got); err != nil {
			t.Fatalf("line %d: %v", i, err)
		}
		if !reflect.DeepEqual(got, n) {
			t.Errorf("line %d: got %+v, want %+v", i, got, n)
		}
	}
}

// TestKeywordIsShown: however long the text, the keyword is in the excerpt, and lines
// break at words.
func TestKeywordIsShown(t *testing.T) {
	content := strings.Repeat("lorem ipsum dolor ", 20) + "Argus " + strings.Repeat("sit amet ", 30) + "end"
	n := pipeline.Notification{Status: pipeline.StatusOK, URL: "https://example.com/", Diffs: []pipeline.Diff{
		{Event: pipeline.Added, Keyword: "argus", Text: content, Snippet: content},
		{Event: pipeline.Added, Keyword: "end", Text: content, Snippet: content},
	}}
	b, err := printer{color: true, location: time.UTC, width: 80}.format(n)
	if err != nil {
		t.Fatal(err)
	}
	got := string(b)
	if !strings.Contains(got, green+bold+"Argus"+reset) || !strings.Contains(got, green+bold+"end"+reset) {
		t.Errorf("a keyword is not shown: %q", got)
	}
	for _, style := range []string{reset, bold, green, red, dim} {
		got = strings.ReplaceAll(got, style, "")
	}
	known := []string{"+", "argus", "end", "...", "lorem", "ipsum", "dolor", "Argus", "sit", "amet"}
	for i, line := range strings.Split(got, "\n") {
		if len(line) > 80 {
			t.Errorf("%q is longer than 80 columns", line)
		}
		for _, w := range strings.Fields(line) {
			if i > 0 && !slices.Contains(known, w) {
				t.Errorf("%q is no whole word", w)
			}
		}
	}
}

// TestWideKeywords: what follows keywords stands in one column, also where their characters
// take two.
func TestWideKeywords(t *testing.T) {
	content := "新しい規約 " + strings.Repeat("lorem ipsum ", 20)
	n := pipeline.Notification{Status: pipeline.StatusOK, URL: "https://example.com/", Diffs: []pipeline.Diff{
		{Event: pipeline.Added, Keyword: "利用規約の変更のお知らせ", Text: content, Snippet: content},
		{Event: pipeline.Added, Keyword: "terms", Text: "lorem", Snippet: "lorem"},
	}}
	b, err := printer{location: time.UTC, width: 70}.format(n)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if render.Columns(strings.TrimSuffix(line, "\n")) > 70 {
			t.Errorf("%q is wider than 70 columns", line)
		}
	}
	if want := "\n  + terms" + strings.Repeat(" ", 24-len("terms")+2) + "lorem\n"; !strings.Contains(string(b), want) {
		t.Errorf("got\n%s\nwithout %q", b, want)
	}
}

// shortWriter takes limit bytes of each write.
type shortWriter struct {
	bytes.Buffer
	limit int
}

func (w *shortWriter) Write(b []byte) (int, error) {
	n := min(len(b), w.limit)
	w.Buffer.Write(b[:n])
	return n, nil
}

func TestShortWriteIsAFailure(t *testing.T) {
	w := &shortWriter{limit: 10}
	s := newSink(t, w, Config{})
	n := pipeline.Notification{ID: "A", Diffs: []pipeline.Diff{}}
	err := s.Deliver(t.Context(), n)
	if class, _ := failure.ClassOf(err); !errors.Is(err, io.ErrShortWrite) || class != failure.ClassRetry {
		t.Fatalf("got %v, want a short write that is tried again", err)
	}
	w.limit = 1 << 20
	if err := s.Deliver(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(w.String(), "\n")
	var got pipeline.Notification
	if len(lines) != 3 || json.Unmarshal([]byte(lines[1]), &got) != nil || got.ID != "A" {
		t.Errorf("after the repeat: %q, want a whole line behind the torn one", w.String())
	}
}

// blockingWriter takes nothing until it is opened.
type blockingWriter struct {
	open chan struct{}
	bytes.Buffer
}

func (w *blockingWriter) Write(b []byte) (int, error) {
	<-w.open
	return w.Buffer.Write(b)
}

func TestBlockedWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &blockingWriter{open: make(chan struct{})}
		s := newSink(t, w, Config{})
		a, b := pipeline.Notification{ID: "A"}, pipeline.Notification{ID: "B"}
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := s.Deliver(ctx, a); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want context.DeadlineExceeded", err)
			}
			cancel()
		}
		close(w.open)
		synctest.Wait()
		for _, n := range []pipeline.Notification{a, b} {
			if err := s.Deliver(t.Context(), n); err != nil {
				t.Errorf("%s: %v", n.ID, err)
			}
		}
		if got := strings.Count(w.String(), `"id":"A"`); got != 1 {
			t.Errorf("A was printed %d times, want 1", got)
		}
		if got := strings.Count(w.String(), `"id":"B"`); got != 1 {
			t.Errorf("B was printed %d times, want 1", got)
		}
	})
}

func TestFormatOfFiles(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := newSink(t, f, Config{}).Deliver(t.Context(), pipeline.Notification{ID: "A"}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(got) {
		t.Errorf("a file got %q, want JSON", got)
	}
}

func TestConfig(t *testing.T) {
	for field, c := range map[string]Config{"format": {Format: "xml"}, "color": {Color: "blue"}} {
		_, err := New(c)
		if fe, ok := errors.AsType[*pipeline.FieldError](err); !ok || fe.Field != field {
			t.Errorf("%+v: got %v, want an error of %s", c, err, field)
		}
	}
}

// newSink returns the sink of c that prints to w.
func newSink(t testing.TB, w io.Writer, c Config) *Stdout {
	t.Helper()
	c.Writer = w
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRegister(t *testing.T) {
	var r registry.Registry
	var b bytes.Buffer
	Register(&r, Config{Writer: &b, Color: ColorNever})
	build, ok := r.Sinks.Lookup("stdout")
	if !ok {
		t.Fatal("stdout is not registered")
	}
	decode := func(c Config) registry.Decode {
		return func(v any) error { *v.(*Config) = c; return nil }
	}
	s, err := build(decode(Config{Format: FormatText}), registry.Env{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Deliver(t.Context(), samples()[0]); err != nil || !strings.Contains(b.String(), "+ out of stock, stock") {
		t.Errorf("got %v and %q", err, b.String())
	}
	if _, err := build(decode(Config{Format: "xml"}), registry.Env{}); err == nil {
		t.Error("the format xml was taken")
	}
}

func TestDigestIsPrintedAsOne(t *testing.T) {
	n := pipeline.Notification{
		Status: pipeline.StatusOK, Type: pipeline.NotificationTypeDigest, URL: "https://example.com/a", Time: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC),
		Diffs: []pipeline.Diff{
			{Event: pipeline.Added, Keyword: "argus", Text: "argus one", Snippet: "argus one"},
			{Event: pipeline.Removed, Keyword: "zeus", Text: "zeus two", Snippet: "zeus two"},
		},
		Items: []pipeline.Item{{ID: "A", Diffs: 1}, {ID: "B", Diffs: 1}},
	}
	b, err := printer{location: time.UTC}.format(n)
	if err != nil {
		t.Fatal(err)
	}
	got := string(b)
	for _, want := range []string{"example.com/a  2 changes of 2 checks\n", "argus one", "zeus two"} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
}
