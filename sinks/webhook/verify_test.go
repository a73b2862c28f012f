package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// prover is a receiver that answers challenges as answer says.
type prover struct {
	t      *testing.T
	answer func(w http.ResponseWriter, challenge string, body []byte)

	mu  sync.Mutex
	log []string // "verification" or the ID of what came
}

func (p *prover) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		p.t.Error(err)
	}
	if err := verify(p.t, "secret", caught{r.Header, body, r.Method}); err != nil {
		p.t.Error(err)
	}
	var v verification
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

func (p *prover) got() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.log)
}

func (p *prover) serve(t *testing.T) (rawURL string, verified func(rawURL string) *Webhook) {
	p.t = t
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	return server.URL, func(rawURL string) *Webhook {
		return made(t, rawURL, Config{
			Secret: registry.NewSecret("secret"), Verify: true, IdempotencyKey: true, Headers: map[string]registry.Secret{"X-Key": registry.NewSecret("k")},
		})
	}
}

// noted is an Attempt with a note.
type noted struct {
	pipeline.Attempt
	note string
	set  int
}

func (n *noted) Note() string        { return n.note }
func (n *noted) SetNote(note string) { n.note = note; n.set++ }

func plainly(w http.ResponseWriter, challenge string, _ []byte) { fmt.Fprintln(w, challenge) }

func TestVerify(t *testing.T) {
	p := &prover{answer: plainly}
	rawURL, made := p.serve(t)
	w, a := made(rawURL), &noted{}
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
		class  pipeline.Class
		after  time.Duration
		want   string
	}{
		"nothing":            {func(http.ResponseWriter, string, []byte) {}, pipeline.ClassRetry, 0, "its answer is not the challenge"},
		"another challenge":  {func(w http.ResponseWriter, c string, _ []byte) { fmt.Fprint(w, c[1:]) }, pipeline.ClassRetry, 0, "its answer is not the challenge"},
		"more than that":     {func(w http.ResponseWriter, c string, _ []byte) { fmt.Fprint(w, "<p>"+c) }, pipeline.ClassRetry, 0, "its answer is not the challenge"},
		"the whole request":  {func(w http.ResponseWriter, _ string, b []byte) { _, _ = w.Write(b) }, pipeline.ClassRetry, 0, "proves nothing"},
		"no such page":       {status(404), pipeline.ClassRetry, 90 * time.Second, "answered 404"},
		"a refused question": {status(400), pipeline.ClassRetry, 90 * time.Second, "answered 400"},
		"it is gone":         {status(410), pipeline.ClassGone, 90 * time.Second, "answered 410"},
		"a redirect":         {status(302), pipeline.ClassRetry, 90 * time.Second, "redirects are not followed"},
		"a reset":            {func(http.ResponseWriter, string, []byte) { panic(http.ErrAbortHandler) }, pipeline.ClassRetry, 0, "no answer"},
	} {
		p := &prover{answer: tt.answer}
		rawURL, made := p.serve(t)
		a := &noted{}
		w := made(rawURL)
		err := w.Deliver(pipeline.WithAttempt(t.Context(), a), sample())
		class, after := pipeline.ClassOf(err)
		if tt.class == pipeline.ClassGone {
			after = tt.after
		}
		if err == nil || class != tt.class || after != tt.after || !strings.Contains(err.Error(), "did not prove itself: ") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, class %d after %s", name, err, class, after)
		}
		if pipeline.IsAmbiguous(err) {
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
	p := &prover{answer: func(http.ResponseWriter, string, []byte) { cancel(); panic(http.ErrAbortHandler) }}
	rawURL, made := p.serve(t)
	if err := made(rawURL).Deliver(ctx, sample()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}
