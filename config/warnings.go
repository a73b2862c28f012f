package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/pipeline/text/stemmers"
)

// Warnings returns the settings of s that are valid but have no effect: how keywords are compared
// where there are none, and stems or stop words of a language that it names and that has none.
// Stemmers that a program registers are not known here.
func Warnings(s pipeline.Subscription) []*pipeline.FieldError {
	var all []*pipeline.FieldError
	if len(s.Keywords) == 0 {
		for _, f := range []struct {
			name string
			set  bool
		}{
			{"stem", s.Stem}, {"filter_stopwords", s.FilterStopwords}, {"match_case", s.MatchCase},
			{"ignore_diacritics", s.IgnoreDiacritics}, {"match", s.Match != ""},
		} {
			if f.set {
				all = append(all, &pipeline.FieldError{Field: f.name, Reason: "has no effect without keywords: every change is reported as it stands"})
			}
		}
		return all
	}
	if s.Language == "" {
		return nil // it is detected, page by page
	}
	known := text.NewLanguages(stemmers.All()...)
	n := known.Normalizer(s.Language)
	warn := func(field, what string, languages []string) {
		all = append(all, &pipeline.FieldError{Field: field, Reason: fmt.Sprintf(
			"has no effect: there are no %s for the language %q, only for %s", what, s.Language, strings.Join(languages, ", "))})
	}
	if s.Stem && !n.HasStemmer() {
		warn("stem", "stems", known.WithStemmer())
	}
	if s.FilterStopwords && !n.HasStopwords() {
		warn("filter_stopwords", "stop words", known.WithStopwords())
	}
	return all
}

// warnAt adds a warning about position p.
func (d *decoder) warnAt(p position, format string, args ...any) {
	d.warnings = append(d.warnings, &Error{d.file, p.line, p.column, oneLine(d.maskVariables(fmt.Sprintf(format, args...)))})
}

// addWarnings collects the warnings about f.
func (d *decoder) addWarnings(f *yamlFile) {
	_, subscribes := d.positions.get("rest") // its clients do
	if len(f.Subscriptions) == 0 && len(f.Documents) == 0 && !subscribes {
		d.warnAt(position{1, 1}, "there are neither subscriptions nor documents: nothing is watched")
	}
	for i, y := range f.Documents {
		if !y.Interval {
			d.warnOfPage(fmt.Sprintf("documents[%d].url", i), y.URL, f.Allow.Fetch)
		}
	}
	d.warnOfAccess(f)
	least := pipeline.Duration(f.Fetch.MinInterval)
	if least == 0 {
		least = pipeline.Duration(pipeline.DefaultMinInterval)
	}
	for i, y := range f.Subscriptions {
		path := fmt.Sprintf("subscriptions[%d]", i)
		s := y.toPipeline()
		for _, w := range Warnings(s) {
			at := joinPath(path, w.Field)
			d.warnAt(d.positionOfPath(at), "%s %s", at, w.Reason)
		}
		if s.Interval == pipeline.Never {
			continue
		}
		d.warnOfPage(joinPath(path, y.urlKey()), s.URL, f.Allow.Fetch)
		at := path + ".interval"
		if every := s.Interval.Every; every > 0 && every < least {
			d.warnAt(d.positionOfPath(at), "%s: %s is raised to %s, which is fetch.min_interval", at, every, least)
		}
		if gap := s.Interval.Cron.Gap(); gap > 0 && gap < least {
			d.warnAt(d.positionOfPath(at), "%s: it asks for a check %s after another one, and there are %s between two checks at least, which is fetch.min_interval", at, gap, least)
		}
	}
}

// warnOfAccess warns of a login in clear, and of pages over http of hosts whose access is for https.
func (d *decoder) warnOfAccess(f *yamlFile) {
	secure := make(map[string]string) // names, by host
	for name, a := range f.Access {
		path := joinPath("access", name)
		if a.Login != nil && strings.HasPrefix(strings.ToLower(a.Login.URL), "http:") {
			at := joinPath(path, "login.url")
			d.warnAt(d.positionOfPath(at), "%s: the password is sent without encryption; write https if the website has it", at)
		}
		for _, h := range a.Hosts {
			secure[strings.TrimPrefix(strings.ToLower(h), "https://")] = name
		}
	}
	for i, y := range f.Subscriptions {
		u, err := url.Parse(y.URL)
		if err != nil || u.Scheme != "http" {
			continue
		}
		if name := secure[strings.ToLower(u.Host)]; name != "" && !slices.Contains(f.Access[name].Pages, y.URL) {
			at := fmt.Sprintf("subscriptions[%d].url", i)
			d.warnAt(d.positionOfPath(at), "%s: access %s is not used for it, since it begins with http and %s in hosts means https; write https here, or http://%[3]s in hosts", at, name, u.Host)
		}
	}
}

// warnOfPage warns of a page at path whose checks cannot but fail.
func (d *decoder) warnOfPage(path, raw string, allow []netip.Prefix) {
	if addr, host := refusedTarget(raw, allow); host != "" {
		d.warnAt(d.positionOfPath(path), "%s: every check will fail, since %s is not a public address; permit it with allow: {fetch: [%s]}", path, host, addr)
	}
}

// warnOfReceiver warns of a URL in the options of a sink at path that cannot be reached. It
// does not show the URL, which may be secret. What a proxy reaches is not known here.
func (d *decoder) warnOfReceiver(path string, options reflect.Value, allow []netip.Prefix) {
	fields := fieldsOf(options.Type())
	if proxy, ok := fields["proxy"]; ok && !options.FieldByIndex(proxy.Index).IsZero() {
		return
	}
	for name, f := range fields {
		var raw string
		switch p := options.FieldByIndex(f.Index).Addr().Interface().(type) {
		case *string:
			raw = *p
		case *registry.Secret:
			raw = p.Reveal()
		}
		if name == "host" { // of a mail server
			raw = "http://" + net.JoinHostPort(raw, "25")
		}
		if addr, host := refusedTarget(raw, allow); host != "" {
			at := joinPath(path, name)
			d.warnAt(d.positionOfPath(at), "%s: every delivery will fail, since %s is not a public address; permit it with allow: {sinks: [%s]}", at, host, addr)
		}
	}
}

// refusedTarget returns the network and the host of the URL raw where no connection to it is
// permitted, whatever names resolve to; "" otherwise.
func refusedTarget(raw string, allow []netip.Prefix) (network, host string) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return "", ""
	}
	host = strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	addrs := []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
	if host != "localhost" && !strings.HasSuffix(host, ".localhost") {
		addr, err := netip.ParseAddr(host)
		if err != nil {
			return "", "" // a name; where it leads shows when it is resolved
		}
		addrs = []netip.Addr{addr.Unmap().WithZone("")}
	}
	for _, a := range addrs {
		if outbound.Check(a, allow) == nil {
			return "", ""
		}
	}
	network = netip.PrefixFrom(addrs[0], addrs[0].BitLen()).String()
	if addrs[0].Is6() {
		network = strconv.Quote(network) // for YAML
	}
	return network, host
}
