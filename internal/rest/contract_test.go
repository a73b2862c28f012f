package rest_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/internal/rest"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/sinks/webhook"
)

// step is a request in a file of test/contract/rest, and its answer.
type step struct {
	Name        string            `json:"name"`
	Method      string            `json:"method"`
	Path        string            `json:"path"`
	Headers     map[string]string `json:"headers"`
	Body        string            `json:"body"`
	Status      int               `json:"status"`
	ContentType string            `json:"content_type"`
	Answer      string            `json:"answer"`
}

func steps(t *testing.T, name string) []step {
	t.Helper()
	b, err := os.ReadFile("../../test/contract/rest/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Steps []step }
	if err := json.Unmarshal(b, &file); err != nil || len(file.Steps) == 0 {
		t.Fatalf("%d steps, %v", len(file.Steps), err)
	}
	return file.Steps
}

// replay sends the requests of a file to base and compares the answers.
func replay(t *testing.T, base, name string) {
	t.Helper()
	for _, s := range steps(t, name) {
		req, err := http.NewRequestWithContext(t.Context(), s.Method, base+s.Path, strings.NewReader(s.Body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range s.Headers {
			req.Header.Set(name, value)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != s.Status || resp.Header.Get("Content-Type") != s.ContentType || string(body) != s.Answer {
			t.Errorf("%s: %s\ngot  %d %s %s\nwant %d %s %s", s.Name, s.Body, resp.StatusCode, resp.Header.Get("Content-Type"), body, s.Status, s.ContentType, s.Answer)
		}
	}
}

// TestOnlySubscriptionsMadeHereAreCancelled holds that a request cannot end a subscription of the
// configuration, or one with other sinks, by the name of its client.
func TestOnlySubscriptionsMadeHereAreCancelled(t *testing.T) {
	const page, hook = "http://127.0.0.1:9/doc", "http://127.0.0.1:9/a"
	receivers, err := rest.NewReceivers(webhook.Config{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := vokter.Config{
		SinkOf: receivers.SinkOf, Sinks: map[string]pipeline.Sink{"ops": receivers.SinkOf("http://127.0.0.1:9/ops")},
		Subscriptions: []pipeline.Subscription{{URL: page, Client: hook, Keywords: []string{"argus"}, Sinks: []string{hook}, Interval: pipeline.Never}},
	}
	r, err := vokter.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	<-r.Running()
	const other = "http://127.0.0.1:9/other"
	if err := r.Subscribe(ctx, pipeline.Subscription{URL: other, Client: hook, Keywords: []string{"argus"}, Sinks: []string{"ops"}, Interval: pipeline.Never}); err != nil {
		t.Fatal(err)
	}
	h := rest.New(r, rest.Options{})
	send := func(path, body string) int {
		req := httptest.NewRequestWithContext(ctx, http.MethodPost, "/vokter/v1/"+path, strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		return w.Code
	}
	for _, url := range []string{page, other} {
		if got := send("cancel", `{"documentUrl":"`+url+`","clientUrl":"`+hook+`"}`); got != http.StatusNotFound {
			t.Errorf("a subscription that was not made here is cancelled: %s: %d", url, got)
		}
	}
	const mine = "http://127.0.0.1:9/mine"
	if got := send("subscribe", `{"documentUrl":"`+mine+`","clientUrl":"`+hook+`","keywords":["argus"]}`); got != http.StatusOK {
		t.Fatalf("subscribe: %d", got)
	}
	if got := send("cancel", `{"documentUrl":"`+mine+`","clientUrl":"`+hook+`"}`); got != http.StatusOK {
		t.Errorf("cancel: %d", got)
	}
}

// TestContract sends the literal requests to a handler over a running pipeline.
func TestContract(t *testing.T) {
	receivers, err := rest.NewReceivers(webhook.Config{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := vokter.New(vokter.Config{SinkOf: receivers.SinkOf})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	<-r.Running()
	for name, o := range map[string]rest.Options{"requests.json": {}, "token.json": {Token: registry.NewSecret("0123456789abcdef")}} {
		server := httptest.NewServer(rest.New(r, o))
		replay(t, server.URL, name)
		server.Close()
	}
}
