package outbound_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/test/chattest"
)

func TestInsist(t *testing.T) {
	refused, failed := pipeline.Refused(errors.New("refused")), errors.New("failed")
	for name, tt := range map[string]struct {
		rich, plain, want error
		sent, told        int
	}{
		"taken":               {nil, nil, nil, 1, 0},
		"failed":              {failed, nil, failed, 1, 0},
		"layout refused":      {refused, nil, nil, 2, 1},
		"both refused":        {refused, refused, refused, 2, 0},
		"refused, then fails": {refused, failed, failed, 2, 0},
	} {
		a := &chattest.Attempt{}
		var sent []string
		send := func(_ context.Context, body []byte) error {
			sent = append(sent, string(body))
			if string(body) == "rich" {
				return tt.rich
			}
			return tt.plain
		}
		err := outbound.Insist(pipeline.WithAttempt(t.Context(), a), send, []byte("rich"), func() []byte { return []byte("plain") })
		if !errors.Is(err, tt.want) || len(sent) != tt.sent || len(a.Reasons) != tt.told {
			t.Errorf("%s: sent %q, told %q, got %v, want %v", name, sent, a.Reasons, err, tt.want)
		}
	}
}

func TestBecause(t *testing.T) {
	u, err := url.Parse("https://example.com/hooks/0123456789abcdef?sig=SECRET")
	if err != nil {
		t.Fatal(err)
	}
	e := outbound.NewEndpoint(u, outbound.Sender{}, "TOKEN1")
	for reason, want := range map[string]string{
		"":                       "failed",
		"no\r\n\x1b[31m hook":    "failed: no [31m hook",
		"0123456789abcdef":       "failed: ***",
		"SE\x00CRET of TOKEN1":   "failed: *** of ***",
		strings.Repeat("x", 9e5): "failed: " + strings.Repeat("x", 200) + " ...",
	} {
		err := e.Because(pipeline.Gone(errors.New("failed")), reason)
		if class, _ := pipeline.ClassOf(err); err.Error() != want || class != pipeline.ClassGone {
			t.Errorf("%.20q: got %v of class %d, want %s", reason, err, class, want)
		}
	}
}
