package httpsource

import (
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/vokter/vokter/pipeline/pageurl"
)

// lenientTransport is an http.RoundTripper that lets net/http take what browsers take. net/http drops a cookie with a
// quote, a backslash or a letter beyond ASCII in its value, and puts one with a blank or comma in quotes: these are
// stored in hexadecimal, and sent as the server wrote them. It refuses a Location with a lone %, and would send a blank
// of a query as it is: it gets these encoded.
type lenientTransport struct{ base http.RoundTripper }

// storedAsHex begins the value of a cookie that is stored in hexadecimal.
const storedAsHex = "hex-of-vokter."

// RoundTrip sends r.
func (t *lenientTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if sent := r.Header.Get("Cookie"); strings.Contains(sent, storedAsHex) {
		r = r.Clone(r.Context())
		r.Header.Set("Cookie", decodeCookies(sent))
	}
	resp, err := t.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	for i, line := range resp.Header["Set-Cookie"] {
		resp.Header["Set-Cookie"][i] = encodeCookie(line)
	}
	if to := resp.Header.Get("Location"); to != "" {
		resp.Header.Set("Location", pageurl.Encode(to))
	}
	return resp, nil
}

// encodeCookie returns a line of Set-Cookie with a value that net/http keeps.
func encodeCookie(line string) string {
	pair, attributes, hasAttributes := strings.Cut(line, ";")
	name, value, ok := strings.Cut(pair, "=")
	value = strings.Trim(value, " \t")
	isControl := func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
	if !ok || strings.ContainsFunc(value, isControl) {
		return line
	}
	if strings.HasPrefix(value, storedAsHex) || isChanged(value) {
		value = storedAsHex + hex.EncodeToString([]byte(value))
	}
	line = name + "=" + value
	if hasAttributes {
		line += ";" + attributes
	}
	return line
}

// isChanged reports whether net/http would change or drop the value of a cookie, which browsers keep. They drop one
// with a control character.
func isChanged(value string) bool {
	if n := len(value); n > 1 && value[0] == '"' && value[n-1] == '"' {
		value = value[1 : n-1] // the quotes around a value are kept
	} else if strings.ContainsAny(value, " ,") {
		return true
	}
	return strings.ContainsFunc(value, func(r rune) bool { return r > '~' || r == '"' || r == '\\' })
}

// decodeCookies returns a line of Cookie with the values as the server wrote them.
func decodeCookies(line string) string {
	pairs := strings.Split(line, "; ")
	for i, pair := range pairs {
		if name, value, ok := strings.Cut(pair, "="); ok {
			pairs[i] = name + "=" + decodeCookie(value)
		}
	}
	return strings.Join(pairs, "; ")
}

// decodeCookie returns the value of a cookie as the server wrote it.
func decodeCookie(value string) string {
	digits, ok := strings.CutPrefix(value, storedAsHex)
	if decoded, err := hex.DecodeString(digits); ok && err == nil {
		return string(decoded)
	}
	return value
}

// CloseIdleConnections closes idle connections.
func (t *lenientTransport) CloseIdleConnections() {
	(&http.Client{Transport: t.base}).CloseIdleConnections()
}

var _ http.RoundTripper = (*lenientTransport)(nil)
