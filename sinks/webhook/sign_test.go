package webhook

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/test/chattest"
)

// caughtRequest is what a receiver got.
type caughtRequest struct {
	header http.Header
	body   []byte
	method string
}

// catchRequest delivers n with the webhook of c, whose URL is its own, and returns the request.
func catchRequest(t *testing.T, now time.Time, n pipeline.Notification, c Config) caughtRequest {
	t.Helper()
	var got caughtRequest
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("reading the request: %v", err)
		}
		got = caughtRequest{r.Header, body, r.Method}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	w := newSink(t, server.URL, c)
	w.sender.Now = func() time.Time { return now }
	if err := w.Deliver(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	return got
}

// newSink returns the webhook of c to a server on this machine.
func newSink(t testing.TB, rawURL string, c Config) *Webhook {
	t.Helper()
	c.URL, c.Allow = registry.NewSecret(rawURL), []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	w, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func sample() pipeline.Notification {
	return pipeline.Notification{
		Status: pipeline.StatusOK, URL: "https://example.com/", ID: "0123456789ABCDEFGHIJKLMNOP", Type: "notification",
		Time: time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC), Client: "default", Version: 7, Title: "Argus <Panoptes>",
		Language: "en", Change: "PONMLKJIHGFEDCBA9876543210",
		Diffs: []pipeline.Diff{
			{Event: pipeline.Added, Keyword: "argus", Text: "Argus' wakeful", Snippet: "In the 5th century and later, Argus' wakeful alertness ...", Offset: 40},
			{Event: pipeline.Removed, Keyword: "zeus", Text: "Zeus", Snippet: "... Zeus sent \"Hermes\" & others ...", Offset: 2},
		},
	}
}

func TestBody(t *testing.T) {
	timeout := pipeline.Notification{
		Status: pipeline.StatusTimeout, URL: "https://example.com/", ID: "T", Type: "notification",
		Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Client: "default",
	}
	for name, n := range map[string]pipeline.Notification{"ok": sample(), "timeout": timeout} {
		got := catchRequest(t, time.Now(), n, Config{})
		file := filepath.Join("testdata", name+".golden")
		if chattest.Updating() {
			if err := os.WriteFile(file, append(got.body, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(got.body)+"\n" != string(want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got.body, want)
		}
		if got.method != http.MethodPost || got.header.Get("Content-Type") != "application/json" || !strings.HasPrefix(got.header.Get("User-Agent"), "vokter") {
			t.Errorf("%s: %s with %v", name, got.method, got.header)
		}
		for _, forbidden := range []string{"Idempotency-Key", "X-Idempotency-Key", standardwebhooks.HeaderWebhookSignature} {
			if _, ok := got.header[http.CanonicalHeaderKey(forbidden)]; ok {
				t.Errorf("%s: there is a header %s", name, forbidden)
			}
		}
	}
}

func TestSignatureIsVerifiedByAnother(t *testing.T) {
	encoded := "whsec_" + base64.StdEncoding.EncodeToString([]byte("a secret of 24 characters"))
	unpadded := strings.TrimRight("whsec_"+base64.StdEncoding.EncodeToString([]byte("another of 25 characters!!")), "=")
	for _, secret := range []string{encoded, unpadded, "any other text"} {
		got := catchRequest(t, time.Now(), sample(), Config{Secret: registry.NewSecret(secret)})
		if err := verifySignature(t, secret, got); err != nil {
			t.Errorf("%q: %v", secret, err)
		}
		got.body[3] ^= 1
		if err := verifySignature(t, secret, got); err == nil {
			t.Errorf("%q: a changed body is verified", secret)
		}
	}
}

// verifySignature checks a request with the module of those who wrote the standard.
func verifySignature(t *testing.T, secret string, c caughtRequest) error {
	t.Helper()
	v, err := standardwebhooks.NewWebhookRaw([]byte(secret))
	if encoded, ok := strings.CutPrefix(secret, "whsec_"); ok {
		for len(encoded)%4 != 0 {
			encoded += "="
		}
		v, err = standardwebhooks.NewWebhook(encoded)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v.Verify(c.body, c.header)
}

func TestRotation(t *testing.T) {
	got := catchRequest(t, time.Now(), sample(), Config{Secret: registry.NewSecret("the new secret"), OldSecret: registry.NewSecret("the old secret")})
	for _, secret := range []string{"the new secret", "the old secret"} {
		if err := verifySignature(t, secret, got); err != nil {
			t.Errorf("%q: %v", secret, err)
		}
	}
	if err := verifySignature(t, "a third secret", got); err == nil {
		t.Error("an unknown secret is verified")
	}
}

func TestEachAttemptHasItsOwnSignature(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	a := catchRequest(t, at, sample(), Config{Secret: registry.NewSecret("secret")})
	b := catchRequest(t, at.Add(time.Minute), sample(), Config{Secret: registry.NewSecret("secret")})
	for name, same := range map[string]bool{"webhook-id": true, "webhook-timestamp": false, "webhook-signature": false} {
		if got := a.header.Get(name) == b.header.Get(name); got != same {
			t.Errorf("%s: the same on both attempts: %v, want %v", name, got, same)
		}
	}
	if got, want := a.header.Get("webhook-timestamp"), fmt.Sprint(at.Unix()); got != want {
		t.Errorf("webhook-timestamp %s, want %s", got, want)
	}
	if string(a.body) != string(b.body) {
		t.Error("the bodies differ")
	}
}

func TestDeliverWithoutDiffsIsNotNull(t *testing.T) {
	n := sample()
	n.Diffs = nil
	if got := catchRequest(t, time.Now(), n, Config{}); !strings.Contains(string(got.body), `"diffs":[]`) {
		t.Errorf("got %s", got.body)
	}
}

func TestIDWithoutDot(t *testing.T) {
	for _, id := range []string{"", "a.b", "a\r\nX-Injected: b", "ä"} {
		n := sample()
		n.ID = id
		err := newSink(t, "https://example.com/", Config{}).Deliver(context.Background(), n)
		if class, _ := failure.ClassOf(err); err == nil || class != failure.ClassPermanent {
			t.Errorf("ID %q: got %v, want a permanent error", id, err)
		}
	}
}

// verifiableServer is a receiver that answers challenges as answer says.
type verifiableServer struct {
	t      *testing.T
	answer func(w http.ResponseWriter, challenge string, body []byte)

	mu  sync.Mutex
	log []string // "verification" or the ID of what came
}

func (p *verifiableServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		p.t.Error(err)
	}
	if err := verifySignature(p.t, "secret", caughtRequest{r.Header, body, r.Method}); err != nil {
		p.t.Error(err)
	}
	var v verificationRequest
	if err := json.Unmarshal(body, &v); err != nil {
		p.t.Error(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if v.Type != "verification" {
		p.log = append(p.log, r.Header.Get("webhook-id"))
		return
	}
	p.log = append(p.log, v.Type)
	if r.Header.Get("X-Key") != "k" || r.Header.Get("Idempotency-Key") == "" || len(v.Challenge) < 26 {
		p.t.Errorf("got %v with %s", r.Header, body)
	}
	p.answer(w, v.Challenge, body)
}

func (p *verifiableServer) got() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.log)
}

func (p *verifiableServer) start(t *testing.T) (rawURL string, verified func(rawURL string) *Webhook) {
	p.t = t
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	return server.URL, func(rawURL string) *Webhook {
		return newSink(t, rawURL, Config{
			Secret: registry.NewSecret("secret"), Verify: true, IdempotencyKey: true, Headers: map[string]registry.Secret{"X-Key": registry.NewSecret("k")},
		})
	}
}

// notedAttempt is an Attempt with a note.
type notedAttempt struct {
	pipeline.Attempt
	note string
	set  int
}

func (n *notedAttempt) Note() string        { return n.note }
func (n *notedAttempt) SetNote(note string) { n.note = note; n.set++ }

func answerChallenge(w http.ResponseWriter, challenge string, _ []byte) { fmt.Fprintln(w, challenge) }

func TestVerify(t *testing.T) {
	p := &verifiableServer{answer: answerChallenge}
	rawURL, made := p.start(t)
	w, a := made(rawURL), &notedAttempt{}
	ctx := pipeline.WithAttempt(t.Context(), a)
	deliver := func(w *Webhook, id string) {
		t.Helper()
		n := sample()
		n.ID = id
		if err := w.Deliver(ctx, n); err != nil {
			t.Fatal(err)
		}
	}
	deliver(w, "a")
	deliver(w, "b")
	if got, want := p.got(), []string{"verification", "a", "b"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if a.set != 1 || a.note == "" || strings.Contains(a.note, "127.0.0.1") || len(a.note) > pipeline.MaxNote {
		t.Errorf("%d notes, the last %q", a.set, a.note)
	}
	// After a start the note says it; a receiver at another URL has to prove itself.
	deliver(made(rawURL), "c")
	deliver(made(rawURL+"/other"), "d")
	if got, want := p.got()[3:], []string{"c", "verification", "d"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	// Another document of a receiver that proved itself has no note yet.
	a.note = ""
	deliver(w, "e")
	if got := p.got(); len(got) != 7 || a.note == "" {
		t.Errorf("got %v, note %q", got, a.note)
	}
	// After a start such a document does not tell that it has.
	a.note = ""
	deliver(made(rawURL), "f")
	if got, want := p.got()[7:], []string{"verification", "f"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestUnproved sends no notification to a receiver that answers otherwise.
func TestUnproved(t *testing.T) {
	status := func(code int) func(http.ResponseWriter, string, []byte) {
		return func(w http.ResponseWriter, challenge string, _ []byte) {
			w.Header().Set("Retry-After", "90")
			w.WriteHeader(code)
			fmt.Fprint(w, challenge)
		}
	}
	for name, tt := range map[string]struct {
		answer func(http.ResponseWriter, string, []byte)
		class  failure.Class
		after  time.Duration
		want   string
	}{
		"nothing":            {func(http.ResponseWriter, string, []byte) {}, failure.ClassRetry, 0, "its answer is not the challenge"},
		"another challenge":  {func(w http.ResponseWriter, c string, _ []byte) { fmt.Fprint(w, c[1:]) }, failure.ClassRetry, 0, "its answer is not the challenge"},
		"more than that":     {func(w http.ResponseWriter, c string, _ []byte) { fmt.Fprint(w, "<p>"+c) }, failure.ClassRetry, 0, "its answer is not the challenge"},
		"the whole request":  {func(w http.ResponseWriter, _ string, b []byte) { _, _ = w.Write(b) }, failure.ClassRetry, 0, "proves nothing"},
		"no such page":       {status(404), failure.ClassRetry, 90 * time.Second, "answered 404"},
		"a refused question": {status(400), failure.ClassRetry, 90 * time.Second, "answered 400"},
		"it is gone":         {status(410), failure.ClassGone, 90 * time.Second, "answered 410"},
		"a redirect":         {status(302), failure.ClassRetry, 90 * time.Second, "redirects are not followed"},
		"a reset":            {func(http.ResponseWriter, string, []byte) { panic(http.ErrAbortHandler) }, failure.ClassRetry, 0, "no answer"},
	} {
		p := &verifiableServer{answer: tt.answer}
		rawURL, made := p.start(t)
		a := &notedAttempt{}
		w := made(rawURL)
		err := w.Deliver(pipeline.WithAttempt(t.Context(), a), sample())
		class, after := failure.ClassOf(err)
		if tt.class == failure.ClassGone {
			after = tt.after
		}
		if err == nil || class != tt.class || after != tt.after || !strings.Contains(err.Error(), "did not prove itself: ") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, class %d after %s", name, err, class, after)
		}
		if failure.IsAmbiguous(err) {
			t.Errorf("%s: %v says that the notification may have arrived", name, err)
		}
		if got := p.got(); !slices.Equal(got, []string{"verification"}) || a.set != 0 {
			t.Errorf("%s: the receiver got %v, %d notes", name, got, a.set)
		}
		p.mu.Lock()
		p.answer = func(w http.ResponseWriter, c string, _ []byte) { fmt.Fprintf(w, `{"challenge":%q}`, c) }
		p.mu.Unlock()
		if err := w.Deliver(t.Context(), sample()); err != nil {
			t.Errorf("%s, at last: %v", name, err)
		}
	}
}

func TestCancelledVerification(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := &verifiableServer{answer: func(http.ResponseWriter, string, []byte) { cancel(); panic(http.ErrAbortHandler) }}
	rawURL, made := p.start(t)
	if err := made(rawURL).Deliver(ctx, sample()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}
