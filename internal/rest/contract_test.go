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
