package config

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
)

// Origin is who made the subscriptions of a file.
const Origin = "yaml"

// convert turns f into a Config without sinks and reports what is wrong in it.
func (d *decoder) convert(f *file) *Config {
	if f.Listen != "" {
		if err := CheckListen(f.Listen); err != nil {
			d.fail("listen", "listen: %v", err)
		}
	}
	c := vokter.Config{
		Dir:     f.Data,
		MinFree: int64(f.MinFree),
		Memory:  int64(f.Memory),
		Origin:  Origin,
		Fetch: vokter.FetchConfig{
			Timeout: f.Fetch.Timeout, UserAgent: f.Fetch.UserAgent, MinInterval: f.Fetch.MinInterval,
			Rate: float64(f.Fetch.PerHost.Rate), Allow: f.Allow.Fetch,
		},
		Delivery: vokter.DeliveryConfig{Retry: f.Delivery.Retry, DeadAfter: f.Delivery.DeadAfter, ExpireAfter: f.Delivery.ExpireAfter},
		Expire:   vokter.ExpireConfig{After: int(f.Expire.After), SelectorGone: f.Expire.SelectorGone},
		Health:   f.Health,
	}
	d.sinkNames("health", f.Health, slices.Collect(maps.Keys(f.Sinks)))
	if n := f.Fetch.PerHost.Concurrency; n != nil {
		if c.Fetch.Concurrency = *n; *n < 1 {
			d.fail("fetch.per_host.concurrency", "fetch.per_host.concurrency: %d is not at least 1", *n)
		}
	}
	c.Documents = d.documents(f)
	c.Subscriptions = d.subscriptions(f)
	return &Config{Router: c, Listen: f.Listen}
}

// failures is a number of failed checks, or "never".
type failures int

func (t *failures) decodeYAML(d *decoder, n ast.Node, path string) {
	s, ok := d.expanded(n)
	if !ok {
		return
	}
	_, number := n.(*ast.IntegerNode)
	switch i, err := strconv.Atoi(s); {
	case s == "never":
		*t = -1
	case err != nil || !number && s == d.raw(n):
		d.failNode(n, "%s must be a whole number or never, not %s", path, describe(n))
	case i < 1:
		d.failNode(n, "%s: %d is not at least 1; write never for no limit", path, i)
	default:
		*t = failures(i)
	}
}

var _ yamlDecoder = (*failures)(nil)

// CheckListen refuses what is no address to listen at. Without a host it is every address of
// the machine.
func CheckListen(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("%q is not an address; write HOST:PORT such as 127.0.0.1:9000", addr)
	}
	if _, err := netip.ParseAddr(host); host != "" && err != nil && !isHostName(host) {
		return fmt.Errorf("%q names no host; write HOST:PORT such as 127.0.0.1:9000", addr)
	}
	return nil
}

// isHostName reports whether s may be the name of a host. Its last label is no number: that
// would be an address, and a wrong one.
func isHostName(s string) bool {
	last := s[strings.LastIndexByte(s, '.')+1:]
	return strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789.-_") == "" &&
		strings.Trim(last, "0123456789") != ""
}

func (d *decoder) documents(f *file) []vokter.Document {
	seen := make(map[string]int)
	var docs []vokter.Document
	for i, doc := range f.Documents {
		path := fmt.Sprintf("documents[%d]", i)
		if d.broken[path] {
			continue
		}
		if _, given := d.at[path+".url"]; !given {
			d.fail(path, "%s has no url; add one such as url: https://example.com/page", path)
		}
		fetched := schemes
		if doc.Interval == onlyNever(pipeline.Never) {
			fetched = nil // it is pushed
		}
		page, _ := pipeline.CanonicalURL(doc.URL)
		if err := pipeline.CheckURL(doc.URL, fetched...); err != nil {
			d.failEach(path, &pipeline.FieldError{Field: "url", Reason: err.Error()})
			continue
		}
		if j, dup := seen[page]; dup {
			d.fail(path+".url", "%s: %s stands in line %d already; remove one", path, doc.URL, d.line(j, "documents"))
			continue
		}
		seen[page] = i
		if !doc.Keep {
			d.failEach(path, &pipeline.FieldError{Field: "keep", Reason: "without it nothing is done; write keep: true, or remove the entry"})
		}
		docs = append(docs, vokter.Document{URL: doc.URL, Keep: doc.Keep, Interval: pipeline.Duration(doc.Interval)})
	}
	return docs
}

// line is where entry i of list begins.
func (d *decoder) line(i int, list string) int { return d.at[fmt.Sprintf("%s[%d]", list, i)].line }
