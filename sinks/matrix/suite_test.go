package matrix_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pipelinetest"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/sinks/matrix"
	"github.com/vokter/vokter/test/chattest"
)

var accept = chattest.Answer(200, `{"event_id":"$Rqnc-F-dvnEYJTyHq_iKxU2bZ1CI92-kuZq3a5lr5Zg"}`)

const room = "!QtykxKocfZaZOUrTwp:matrix.org"

func TestConformance(t *testing.T) {
	f := pipelinetest.HTTPSinkFeatures{
		Accept: accept,
		Imposters: []http.HandlerFunc{
			chattest.Answer(204, ""), chattest.Answer(200, ""), chattest.Answer(200, "{}"), chattest.Answer(200, `{"event_id":""}`),
			chattest.Answer(200, `{"event_id":1}`), chattest.Answer(200, `{"errcode":"M_FORBIDDEN","error":"x"}`), chattest.Answer(200, "<html>welcome</html>"),
		},
		Decode: func(h http.Header, body []byte) (string, []string, error) {
			if !strings.HasPrefix(h.Get("Authorization"), "Bearer ") {
				t.Error("there is no token")
			}
			c, err := read(body)
			if err != nil {
				return "", nil, err
			}
			quotes, links := shown(t, c)
			if len(links) > 1 || len(links) == 1 && links[0] != "https://example.com/" {
				t.Errorf("there are links to %q", links)
			}
			return c.Ours.ID, quotes, nil
		},
		ForPeople: true,
	}
	pipelinetest.TestHTTPSink(t, f, func(t *testing.T, rawURL string, o pipelinetest.HTTPSinkOptions) pipeline.Sink {
		u, err := url.Parse(rawURL)
		if err != nil {
			t.Fatal(err)
		}
		u.User = nil // the token logs in
		c := matrix.Config{Homeserver: registry.NewSecret(u.String()), Room: room, Token: registry.NewSecret(o.Secret)}
		return chattest.Build(t, matrix.New, c, registry.Connection{Allow: o.Allow, RootCAs: o.RootCAs})
	})
}

// received is what a homeserver reads of a request.
type received struct {
	MsgType  string `json:"msgtype"`
	Body     string
	Format   string
	HTML     string              `json:"formatted_body"`
	Mentions *map[string]any     `json:"m.mentions"`
	Ours     struct{ ID string } `json:"io.vokter.notification"`
}

func read(body []byte) (received, error) {
	var c received
	err := json.Unmarshal(body, &c)
	return c, err
}

// elements are those that messages may have.
var elements = map[string]bool{"p": true, "strong": true, "del": true, "br": true, "a": true, "blockquote": true}

// shown returns the quotes in the HTML of c, and the targets of its links. It fails the test
// where c mentions anybody, is too long, or has other elements.
func shown(t *testing.T, c received) (quotes, links []string) {
	t.Helper()
	if c.Mentions == nil || len(*c.Mentions) != 0 || c.Body == "" || len(c.Body)+len(c.HTML) > 45_000 {
		t.Errorf("mentions %v, %d and %d bytes", c.Mentions, len(c.Body), len(c.HTML))
	}
	if c.HTML == "" {
		return nil, nil
	}
	if c.Format != "org.matrix.custom.html" {
		t.Errorf("the format is %q", c.Format)
	}
	quote := false
	z := html.NewTokenizer(strings.NewReader(c.HTML))
	for {
		kind := z.Next()
		token := z.Token()
		switch kind {
		case html.ErrorToken:
			return quotes, links
		case html.TextToken:
			if quote {
				quotes[len(quotes)-1] += token.Data
			}
		case html.StartTagToken, html.EndTagToken:
			if !elements[token.Data] || len(token.Attr) > 1 || len(token.Attr) == 1 && token.Data+token.Attr[0].Key != "ahref" {
				t.Errorf("there is %s in %.300q", token, c.HTML)
			}
			if token.Data == "blockquote" {
				if quote = kind == html.StartTagToken; quote {
					quotes = append(quotes, "")
				}
			}
			for _, a := range token.Attr {
				links = append(links, a.Val)
			}
		default:
			t.Errorf("there is %s in %.300q", token, c.HTML)
		}
	}
}
