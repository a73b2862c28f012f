package config

import (
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/vokter/vokter/pipeline/registry"
)

// Web has the settings of the web page.
type Web struct {
	// PublicURL is the address at which people reach the web page, without a slash at the end, such as
	// https://vokter.example.com or https://example.com/vokter. It is empty if it is not known.
	PublicURL string
	// Proxy says whom a proxy in front of the listener has logged in. Nil means that there is none.
	Proxy *Proxy
	// Feeds are lists of changes that anybody can read who knows their secret.
	Feeds []Feed
}

// Proxy is a proxy that logs users in.
type Proxy struct {
	// Header is the name of the request header with the user, who is the token of this name.
	Header string
	// From are the addresses of the proxy. The header counts in requests from there only.
	From []netip.Prefix
}

// Feed is a list of changes, as Atom and as JSON Feed.
type Feed struct {
	// Name is the last part of the address of the feed.
	Name string
	// Hash is the hash of its secret, as HashToken returns it.
	Hash string
	// Client restricts the feed to the notifications of this client. Empty means all changes.
	Client string
}

// webSection is the shape of the section "web".
type webSection struct {
	Proxy *webProxy          `yaml:"proxy"`
	Feeds map[string]webFeed `yaml:"feeds"`
}

type webProxy struct {
	Header string         `yaml:"header"`
	From   []netip.Prefix `yaml:"from"`
}

type webFeed struct {
	Secret registry.Secret `yaml:"secret"`
	Client string          `yaml:"client"`
}

// convertWeb returns the settings in f.
func (d *decoder) convertWeb(f *yamlFile) Web {
	for _, key := range []string{"web", "public_url"} {
		if _, given := d.positions.get(key); given && f.Listen == "" {
			d.failPath(key, "%s: there is no listen, so that nobody reaches the web page; add one such as listen: 127.0.0.1:9000", key)
		}
	}
	w := Web{PublicURL: strings.TrimSuffix(f.PublicURL, "/")}
	if w.PublicURL != "" {
		u, err := url.Parse(w.PublicURL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.EscapedPath() != path.Clean(u.Path) && u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
			d.failPath("public_url", "public_url: %q is not the address of the web page; write a scheme, a host and perhaps a path, such as https://vokter.example.com or https://example.com/vokter", f.PublicURL)
			w.PublicURL = ""
		}
	}
	if p := f.Web.Proxy; p != nil {
		if !isHeaderName(p.Header) {
			d.failPath("web.proxy", "web.proxy: it needs the name of the header with the user; add one such as header: X-Forwarded-User")
		}
		if len(p.From) == 0 {
			d.failPath("web.proxy", "web.proxy: it needs the addresses of the proxy, because anybody else could send the header; add some such as from: [127.0.0.1/32]")
		}
		w.Proxy = &Proxy{http.CanonicalHeaderKey(p.Header), p.From}
	}
	owners := make(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(f.Web.Feeds)) {
		at, feed := joinPath("web.feeds", name), f.Web.Feeds[name]
		if d.brokenPaths[at] {
			continue
		}
		switch secret := feed.Secret.Reveal(); {
		case secret == "":
			d.failPath(at, "%s: it has no secret; add one, or secret_file, of at least %d characters; vokter-stream token new makes some", at, minTokenLength)
		case len(secret) < minTokenLength || url.PathEscape(secret) != secret:
			d.failPath(at, "%s: the secret stands in an address and must not be guessed; use at least %d letters and digits, such as vokter-stream token new makes", at, minTokenLength)
		case owners[secret] != "":
			d.failPath(at, "%s: it is the secret of %s already; make another one with vokter-stream token new", at, owners[secret])
		default:
			owners[secret] = fmt.Sprint("web.feeds.", name)
			w.Feeds = append(w.Feeds, Feed{name, HashToken(secret), feed.Client})
		}
	}
	return w
}

// isHeaderName reports whether name can be that of a header.
func isHeaderName(name string) bool {
	return name != "" && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}
