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
	"Content-Type":      "it follows from format, or write content_type beside body",
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

// takeHeaders takes the headers of c and what signs in.
func (w *Webhook) takeHeaders(c Config, bad *mistakes) {
	for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
		value := c.Headers[name].Reveal()
		field := "headers." + name
		if err := checkHeader(name, value); err != nil {
			bad.add(field, err)
			continue
		}
		if w.headers.Get(name) != "" {
			bad.add(field, errors.New("the header is given twice, in two spellings"))
			continue
		}
		w.headers.Set(name, value)
		w.post.Secrets.Add(value)
	}
	if w.bearer != "" {
		if err := checkBearer(w.bearer); err != nil {
			bad.add("bearer", err)
			return
		}
		w.post.Secrets.Add(w.bearer)
	}
	w.checkAuthorization(bad)
}

// checkBearer says why token cannot be sent as one, without quoting it.
func checkBearer(token string) error {
	if err := checkValue(token); err != nil {
		return err
	}
	switch {
	case strings.EqualFold(token[:min(len(token), len("bearer "))], "bearer "):
		return errors.New(`the word "Bearer" is added; write only the token`)
	case strings.ContainsAny(token, " \t"):
		return errors.New("its value has a blank, which no token can have")
	}
	return nil
}

// checkAuthorization notes where there is more than one.
func (w *Webhook) checkAuthorization(bad *mistakes) {
	user := w.url != nil && w.url.User != nil
	given := w.headers.Get("Authorization") != ""
	switch {
	case w.bearer != "" && given:
		bad.add("bearer", errors.New("headers has Authorization already; give one of them"))
	case w.bearer != "" && user:
		bad.add("bearer", errors.New("url has a user already, which is sent as Authorization; give one of them"))
	case given && user:
		bad.add("headers.Authorization", errors.New("url has a user already, which is sent as that; give one of them"))
	}
}

// quoted is an ID as the value of Idempotency-Key: a string in quotes.
func quoted(id string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(id) + `"`
}
