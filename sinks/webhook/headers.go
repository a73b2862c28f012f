package webhook

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// ours are the headers that a webhook sets itself, or leaves to an option.
var ours = map[string]string{
	"Content-Type":      "it follows from format",
	"User-Agent":        "it names this program",
	"Webhook-Id":        "it names the notification",
	"Webhook-Timestamp": "it is signed",
	"Webhook-Signature": "it follows from secret",
	"Idempotency-Key":   "write idempotency_key: true",
	"X-Idempotency-Key": "write idempotency_key: true, which sends Idempotency-Key",
}

// ofHTTP are the headers that say how one connection works, and so HTTP itself sets them.
var ofHTTP = []string{
	"Accept-Encoding", "Connection", "Content-Length", "Expect", "Host", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
	"Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// checkHeader says why a header cannot be sent with every request.
func checkHeader(name, value string) error {
	canonical := http.CanonicalHeaderKey(name)
	switch {
	case !httpguts.ValidHeaderFieldName(name):
		return errors.New(`this is not the name of a header; use letters, digits and "-"`)
	case ours[canonical] != "":
		return fmt.Errorf("this header cannot be given: %s", ours[canonical])
	case slices.Contains(ofHTTP, canonical):
		return errors.New("this header cannot be given: it belongs to the connection")
	case strings.HasPrefix(canonical, "Ce-"):
		return errors.New("this header cannot be given: those that begin with ce- are attributes of a CloudEvent")
	}
	return checkValue(value)
}

// checkValue says why value cannot be that of a header, without quoting it.
func checkValue(value string) error {
	switch {
	case strings.Trim(value, " \t") == "":
		return errors.New("it is empty; give it a value, or leave the header out")
	case strings.ContainsAny(value, "\r\n"):
		return errors.New("its value has a line break, which no header can have; is the file or variable right?")
	case strings.Trim(value, " \t") != value:
		return errors.New("its value begins or ends with white space, which does not arrive; remove that")
	}
	for _, r := range value {
		if r != '\t' && (r < ' ' || r > '~') {
			return errors.New("its value has a character that is not plain ASCII, which receivers read in different ways; encode it")
		}
	}
	return nil
}

// Headers are sent with every request, by their names. Their values do not appear in errors.
// Those that HTTP, or a Webhook itself, sets are reported by Validate.
func Headers(h map[string]string) Option {
	return func(w *Webhook) {
		for _, name := range slices.Sorted(maps.Keys(h)) {
			value := h[name]
			field := "headers." + name
			if err := checkHeader(name, value); err != nil {
				w.fail(field, err)
				continue
			}
			if w.headers.Get(name) != "" {
				w.fail(field, errors.New("the header is given twice, in two spellings"))
				continue
			}
			w.headers.Set(name, value)
			w.post.Secrets.Add(value)
		}
	}
}

// Bearer is a token that is sent as "Authorization: Bearer ..."; empty: none.
func Bearer(token string) Option {
	return func(w *Webhook) {
		if token == "" {
			return
		}
		err := checkValue(token)
		switch {
		case err != nil:
		case strings.EqualFold(token[:min(len(token), len("bearer "))], "bearer "):
			err = errors.New(`the word "Bearer" is added; write only the token`)
		case strings.ContainsAny(token, " \t"):
			err = errors.New("its value has a blank, which no token can have")
		}
		if err != nil {
			w.fail("bearer", err)
			return
		}
		w.bearer = token
		w.post.Secrets.Add(token)
	}
}

// checkAuthorization notes where there is more than one.
func (w *Webhook) checkAuthorization() {
	user := w.url != nil && w.url.User != nil
	given := w.headers.Get("Authorization") != ""
	switch {
	case w.bearer != "" && given:
		w.fail("bearer", errors.New("headers has Authorization already; give one of them"))
	case w.bearer != "" && user:
		w.fail("bearer", errors.New("url has a user already, which is sent as Authorization; give one of them"))
	case given && user:
		w.fail("headers.Authorization", errors.New("url has a user already, which is sent as that; give one of them"))
	}
}

// quoted is an ID as the value of Idempotency-Key: a string in quotes.
func quoted(id string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(id) + `"`
}
