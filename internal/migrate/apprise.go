package migrate

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// ErrNoSink says that there is no kind of sink for an Apprise URL.
var ErrNoSink = errors.New("there is no kind of receiver for this address here; name an Apprise server that passes it on")

// appriseURL is an Apprise URL in parts. These are not always those of a URL: a token may stand where the host does.
type appriseURL struct {
	scheme, user, password string
	host                   string // with its port
	path                   []string
	query                  url.Values
}

// parseApprise takes an Apprise URL apart.
func parseApprise(raw string) (a appriseURL, err error) {
	scheme, rest, ok := strings.Cut(strings.TrimSpace(raw), "://")
	if !ok || scheme == "" || rest == "" {
		return a, errors.New("this is no Apprise URL; write one such as mailto://user:password@example.com")
	}
	a.scheme = strings.ToLower(scheme)
	rest, query, _ := strings.Cut(rest, "?")
	if a.query, err = url.ParseQuery(query); err != nil {
		return a, err
	}
	parts := strings.Split(rest, "/")
	if at := strings.LastIndex(parts[0], "@"); at >= 0 {
		a.user, a.password, _ = strings.Cut(parts[0][:at], ":")
		parts[0] = parts[0][at+1:]
	}
	for i, text := range append(parts, a.user, a.password) {
		if text, err = url.PathUnescape(text); err != nil {
			return a, err
		}
		switch {
		case i == 0:
			a.host = text
		case i == len(parts):
			a.user = text
		case i > len(parts):
			a.password = text
		case text != "":
			a.path = append(a.path, text)
		}
	}
	return a, nil
}

// address returns the URL of a web server: what is below the host is path.
func (a appriseURL) address(path ...string) string {
	scheme := "http"
	if strings.HasSuffix(a.scheme, "s") {
		scheme = "https"
	}
	return scheme + "://" + a.host + "/" + strings.Join(path, "/")
}

// mailServers are the servers of providers whose domain is no mail server.
var mailServers = map[string]string{
	"gmail.com": "smtp.gmail.com", "googlemail.com": "smtp.gmail.com", "outlook.com": "smtp.office365.com", "hotmail.com": "smtp.office365.com",
	"live.com": "smtp.office365.com", "yahoo.com": "smtp.mail.yahoo.com", "fastmail.com": "smtp.fastmail.com", "icloud.com": "smtp.mail.me.com",
	"me.com": "smtp.mail.me.com", "gmx.net": "mail.gmx.net", "gmx.de": "mail.gmx.net", "web.de": "smtp.web.de", "zoho.com": "smtp.zoho.com",
}

// appriseForm is what is understood of an Apprise URL: how many parts its path has, and the keys of its query.
type appriseForm struct {
	least, most int
	keys        []string
}

const anyParts = 100

// appriseForms are the forms by scheme, without the s of TLS.
var appriseForms = map[string]appriseForm{
	"mailto": {0, anyParts, []string{"smtp", "user", "pass", "from", "to", "mode"}}, "discord": {1, 1, nil}, "slack": {1, 3, nil},
	"tgram": {1, 1, []string{"topic"}}, "ntfy": {0, 1, []string{"token"}}, "gotify": {1, anyParts, nil}, "mmost": {1, 1, []string{"channel"}},
	"json": {0, anyParts, nil},
}

var errSeveral = errors.New("it names several receivers, or a part that is not understood; add one receiver for each, " +
	"or name an Apprise server that passes it on")

// appriseLayout are the keys of a query that say how Apprise lays a message out or waits: they have no meaning here.
var appriseLayout = []string{"format", "overflow", "emojis", "image", "footer", "cto", "rto"}

// check returns an error that names what is not understood of a, so that nothing of it is left out in silence.
func (a appriseURL) check(form appriseForm) error {
	for _, key := range slices.Sorted(maps.Keys(a.query)) {
		if !slices.Contains(form.keys, key) && !slices.Contains(appriseLayout, key) {
			return fmt.Errorf("%q of its query is not understood; leave it out, or name an Apprise server that passes it on", key)
		}
	}
	switch n := len(a.path); {
	case n < form.least:
		return fmt.Errorf("a part is missing behind %s://%s/", a.scheme, a.host)
	case n > form.most:
		return errSeveral
	case strings.Contains(strings.Join(a.path, "/"), ":/"):
		return errors.New("it holds several addresses; add one receiver for each")
	}
	return nil
}

// Apprise returns the kind of sink that an Apprise URL means, with its options as text. It returns ErrNoSink where there
// is none.
func Apprise(raw string) (kind string, options map[string]string, err error) {
	a, err := parseApprise(raw)
	if err != nil {
		return "", nil, err
	}
	at := func(i int) string {
		if i < len(a.path) {
			return a.path[i]
		}
		return ""
	}
	if form, ok := appriseForms[strings.TrimSuffix(a.scheme, "s")]; ok { // mailtos is mailto over TLS
		if err := a.check(form); err != nil {
			return "", nil, err
		}
	}
	switch a.scheme {
	case "mailto", "mailtos":
		return "email", a.mail(), nil
	case "discord":
		return "discord", map[string]string{"webhook_url": "https://discord.com/api/webhooks/" + a.host + "/" + at(0)}, nil
	case "slack":
		if strings.HasPrefix(a.host, "xox") {
			if len(a.path) > 1 {
				return "", nil, errSeveral
			}
			return "slack", map[string]string{"token": a.host, "channel": at(0)}, nil
		}
		return "slack", map[string]string{"webhook_url": "https://hooks.slack.com/services/" + a.host + "/" + at(0) + "/" + at(1)}, nil
	case "tgram":
		chat, topic, _ := strings.Cut(at(0), ":")
		return "telegram", map[string]string{"token": strings.TrimPrefix(a.host, "bot"), "chat_id": chat, "message_thread_id": cmp.Or(topic, a.query.Get("topic"))}, nil
	case "ntfy", "ntfys":
		o := map[string]string{"url": "https://ntfy.sh/" + a.host}
		if len(a.path) > 0 {
			o["url"] = a.address(at(0))
		}
		if token := cmp.Or(a.query.Get("token"), a.user); a.password == "" {
			o["token"] = token
		} else {
			o["username"], o["password"] = a.user, a.password
		}
		return "ntfy", o, nil
	case "gotify", "gotifys":
		if len(a.path) == 0 {
			return "", nil, errors.New("it has no token; write gotify://host/token")
		}
		last := len(a.path) - 1
		return "gotify", map[string]string{"url": a.address(a.path[:last]...), "token": a.path[last]}, nil
	case "mmost", "mmosts":
		return "mattermost", map[string]string{"webhook_url": a.address("hooks", at(len(a.path)-1)), "channel": a.query.Get("channel"), "username": a.user}, nil
	case "json", "jsons":
		o := map[string]string{"url": a.address(a.path...)}
		if a.user != "" {
			o["headers"] = "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(a.user+":"+a.password))
		}
		return "webhook", o, nil
	}
	return "", nil, ErrNoSink
}

// mail returns the options of the mail that a means.
func (a appriseURL) mail() map[string]string {
	host, port, _ := strings.Cut(a.host, ":")
	server := cmp.Or(a.query.Get("smtp"), mailServers[host], host)
	user := cmp.Or(a.query.Get("user"), a.user)
	address := user
	if !strings.Contains(address, "@") {
		address += "@" + host
	}
	from := cmp.Or(a.query.Get("from"), address)
	if !strings.Contains(from, "@") { // it is the name of the sender
		from = address
	}
	to := a.path
	for one := range strings.SplitSeq(a.query.Get("to"), ",") {
		if one = strings.TrimSpace(one); one != "" {
			to = append(to, one)
		}
	}
	if len(to) == 0 {
		to = []string{from}
	}
	o := map[string]string{"host": server, "port": port, "from": from, "to": strings.Join(to, "\n")}
	if password := cmp.Or(a.query.Get("pass"), a.password); password != "" {
		if o["username"], o["password"] = user, password; mailServers[host] != "" {
			o["username"] = address
		}
	}
	switch mode := a.query.Get("mode"); {
	case mode == "ssl":
		o["tls"] = "implicit"
	case a.scheme == "mailto" && mode == "" && mailServers[host] == "" && o["password"] == "": // no password goes unencrypted
		o["tls"] = "none"
	}
	return o
}
