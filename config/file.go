package config

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/pipeline/text/stemmers"
	"github.com/vokter/vokter/sources/browser"
	filesource "github.com/vokter/vokter/sources/file"
	httpsource "github.com/vokter/vokter/sources/http"
)

// yamlFile is the shape of a configuration.
type yamlFile struct {
	Data          string                       `yaml:"data"`
	MinFree       registry.Size                `yaml:"min_free"`
	Memory        registry.Size                `yaml:"memory"`
	Listen        listenAddr                   `yaml:"listen"`
	PublicURL     string                       `yaml:"public_url"`
	EventSource   string                       `yaml:"event_source"`
	API           apiSection                   `yaml:"api"`
	Web           webSection                   `yaml:"web"`
	Rest          restSection                  `yaml:"rest"`
	Language      string                       `yaml:"language"`
	Retention     retentionSection             `yaml:"retention"`
	Transport     transportEntry               `yaml:"transport"`
	Allow         allowSection                 `yaml:"allow"`
	Fetch         fetchSection                 `yaml:"fetch"`
	Access        map[string]httpsource.Access `yaml:"access"`
	Browser       browser.Config               `yaml:"browser"`
	Delivery      deliverySection              `yaml:"delivery"`
	Expire        expireSection                `yaml:"expire"`
	Health        []string                     `yaml:"health"`
	Changes       []string                     `yaml:"changes"`
	Baseline      bool                         `yaml:"baseline"`
	Documents     []documentEntry              `yaml:"documents"`
	Sources       map[string]sourceEntry       `yaml:"sources"`
	Readers       map[string]readerEntry       `yaml:"readers"`
	Sinks         map[string]sinkEntry         `yaml:"sinks"`
	Subscriptions []subscriptionEntry          `yaml:"subscriptions"`
}

type allowSection struct {
	Fetch []netip.Prefix `yaml:"fetch"`
	Sinks []netip.Prefix `yaml:"sinks"`
	Files []string       `yaml:"files"`
}

type fetchSection struct {
	Timeout     time.Duration `yaml:"timeout"`
	UserAgent   string        `yaml:"user_agent"`
	MinInterval time.Duration `yaml:"min_interval"`
	PDF         bool          `yaml:"pdf"`
	Robots      bool          `yaml:"robots"`
	PerHost     struct {
		Concurrency *int `yaml:"concurrency"`
		Rate        rate `yaml:"rate"`
	} `yaml:"per_host"`
}

type deliverySection struct {
	Retry       []time.Duration `yaml:"retry"`
	DeadAfter   time.Duration   `yaml:"dead_after"`
	ExpireAfter time.Duration   `yaml:"expire_after"`
}

type expireSection struct {
	After        failureLimit `yaml:"after"`
	Retry        retryLimit   `yaml:"retry"`
	SelectorGone bool         `yaml:"selector_gone"`
}

type retentionSection struct {
	Age      time.Duration `yaml:"age"`
	Versions *int          `yaml:"versions"`
	Disk     share         `yaml:"disk"`
}

// retentionEntry is the part of retention that a document can say, too.
type retentionEntry struct {
	Age      time.Duration `yaml:"age"`
	Versions *int          `yaml:"versions"`
}

type documentEntry struct {
	URL      string    `yaml:"url"`
	Keep     bool      `yaml:"keep"`
	Interval onlyNever `yaml:"interval"`
	Language string    `yaml:"language"`
	// Retention takes the place of that of the file.
	Retention retentionEntry  `yaml:"retention"`
	Changes   []string        `yaml:"changes"`
	Expire    pipeline.Expire `yaml:"expire"`
	// Fetch and Steps say how the page is fetched.
	Fetch browser.Mode   `yaml:"fetch"`
	Steps []browser.Step `yaml:"steps"`
	// Tags are added to those of the subscriptions of the file to the page.
	Tags []string `yaml:"tags"`
}

// subscriptionEntry is a subscription; package pipeline describes its options.
type subscriptionEntry struct {
	pipeline.Subscription
	Sitemap string         `yaml:"sitemap"`
	Value   *valueSection  `yaml:"value"`
	Fetch   browser.Mode   `yaml:"fetch"`
	Steps   []browser.Step `yaml:"steps"`
}

type valueSection struct {
	Select []pipeline.Selector `yaml:"select"`
	pipeline.Value
}

// Origin is who made the subscriptions of a file.
const Origin = "yaml"

// convertFile makes a Config of f, without its sinks, and records the mistakes it finds in d.errs.
func (d *decoder) convertFile(f *yamlFile) *Config {
	c := vokter.Config{
		Dir:      f.Data,
		MinFree:  int64(f.MinFree),
		Memory:   int64(f.Memory),
		Origin:   Origin,
		Language: f.Language,
		Fetch: vokter.FetchConfig{
			Timeout: f.Fetch.Timeout, UserAgent: f.Fetch.UserAgent, MinInterval: f.Fetch.MinInterval, PDF: f.Fetch.PDF, Robots: f.Fetch.Robots,
			Rate: float64(f.Fetch.PerHost.Rate), Allow: f.Allow.Fetch, Files: f.Allow.Files,
		},
		Access:   f.Access,
		Stemmers: stemmers.All(),
		Delivery: vokter.DeliveryConfig{Retry: f.Delivery.Retry, DeadAfter: f.Delivery.DeadAfter, ExpireAfter: f.Delivery.ExpireAfter},
		Expire:   vokter.ExpireConfig{After: int(f.Expire.After), Retry: time.Duration(f.Expire.Retry), SelectorGone: f.Expire.SelectorGone},
		Health:   f.Health, Changes: f.Changes, Baseline: f.Baseline, EventSource: f.EventSource,
	}
	for i, path := range f.Allow.Files {
		if err := filesource.CheckAllow(path); err != nil {
			d.failPath(fmt.Sprintf("allow.files[%d]", i), "allow.files[%d]: %v", i, err)
		}
	}
	for name := range f.Access {
		d.pluginPath("access", "group of access settings", name)
	}
	d.failEach("access", httpsource.CheckAccess(f.Access))
	if err := flow.CheckSource(f.EventSource); err != nil {
		d.failPath("event_source", "event_source: %v", err)
	}
	if err := text.CheckLanguage(f.Language); err != nil {
		d.failPath("language", "language: %v", err)
	}
	d.checkSinkNames("health", f.Health, slices.Collect(maps.Keys(f.Sinks)))
	c.Retention = d.convertRetention("retention", retentionEntry{f.Retention.Age, f.Retention.Versions})
	c.Retention.Disk = float64(f.Retention.Disk)
	if n := f.Fetch.PerHost.Concurrency; n != nil {
		if c.Fetch.Concurrency = *n; *n < 1 {
			d.failPath("fetch.per_host.concurrency", "fetch.per_host.concurrency: must be at least 1, not %d", *n)
		}
	}
	c.Documents = d.convertDocuments(f)
	c.Subscriptions = d.convertSubscriptions(f)
	opened := d.convertBrowser(f)
	c.Fetchers = []pipeline.Fetcher{opened}
	return &Config{Router: c, Listen: string(f.Listen), Browser: opened}
}

// checkListen returns an error if addr is not HOST:PORT with a numeric port. The host may be an IP
// address, a host name, or empty, which means all addresses of the machine.
func checkListen(addr string) error {
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

// isLoopback reports whether addr, HOST:PORT, is reached from this machine only.
func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	ip, notIP := netip.ParseAddr(host)
	return err == nil && (strings.EqualFold(host, "localhost") || notIP == nil && ip.IsLoopback())
}

// hasPortZero reports whether the system chooses the port of addr.
func hasPortZero(addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	n, notNumber := strconv.ParseUint(port, 10, 16)
	return err == nil && notNumber == nil && n == 0
}

// isHostName reports whether s may be the name of a host. Its last label is no number: that
// would be an address, and a wrong one.
func isHostName(s string) bool {
	last := s[strings.LastIndexByte(s, '.')+1:]
	return strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789.-_") == "" &&
		strings.Trim(last, "0123456789") != ""
}

// convertRetention checks and converts e, which stands at path.
func (d *decoder) convertRetention(path string, e retentionEntry) vokter.Retention {
	r := vokter.Retention{Age: e.Age}
	if n := e.Versions; n != nil {
		if r.Versions = *n; *n < 2 || *n > vokter.MaxVersions {
			d.failPath(path+".versions", "%s.versions: %d is not between 2, which a difference takes, and %d", path, *n, vokter.MaxVersions)
		}
	}
	return r
}

// convertDocuments checks and converts the documents of f.
func (d *decoder) convertDocuments(f *yamlFile) []vokter.Document {
	seen := make(map[string]int)
	var docs []vokter.Document
	for i, doc := range f.Documents {
		path := fmt.Sprintf("documents[%d]", i)
		if d.brokenPaths[path] {
			continue
		}
		if _, given := d.positions.get(path + ".url"); !given {
			d.failPath(path, "%s has no url; add one such as url: https://example.com/page", path)
		}
		fetched := fetchedSchemes
		if doc.Interval {
			fetched = nil // it is pushed
		}
		page, _ := pageurl.Canonical(doc.URL)
		err := pageurl.Check(doc.URL, fetched...)
		if err == nil && fetched != nil {
			err = checkFileURL(page, f.Allow.Files)
		}
		if err != nil {
			d.failEach(path, &pipeline.FieldError{Field: "url", Reason: err.Error()})
			continue
		}
		if j, dup := seen[page]; dup {
			d.failPath(path+".url", "%s: %s is listed in line %d already; remove one of them", path, doc.URL, d.entryLine(j, "documents"))
			continue
		}
		seen[page] = i
		if len(doc.Tags) > 0 && reflect.DeepEqual(doc, documentEntry{URL: doc.URL, Tags: doc.Tags}) {
			continue // it only names tags
		}
		if !doc.Keep {
			d.failEach(path, &pipeline.FieldError{Field: "keep", Reason: d.whyKeepIsNeeded(path)})
		}
		if err := text.CheckLanguage(doc.Language); err != nil {
			d.failEach(path, &pipeline.FieldError{Field: "language", Reason: err.Error()})
		}
		docs = append(docs, vokter.Document{URL: doc.URL, Keep: doc.Keep, Language: doc.Language, Interval: doc.Interval.toPipeline(),
			Retention: d.convertRetention(path+".retention", doc.Retention), Expire: doc.Expire, Changes: doc.Changes})
	}
	return docs
}

// whyKeepIsNeeded returns why the entry of documents at path needs keep: true, by the settings that it has.
func (d *decoder) whyKeepIsNeeded(path string) string {
	var given []string
	for _, name := range []string{"retention", "expire", "changes", "language", "interval", "fetch", "steps"} {
		if _, ok := d.positions.get(joinPath(path, name)); ok {
			given = append(given, name)
		}
	}
	if len(given) == 0 {
		return "must be true, since an entry without it does nothing; write keep: true or remove the entry"
	}
	names := strings.Join(given, ", ")
	return fmt.Sprintf("must be true for %s to hold; add keep: true, which also watches the page while nobody subscribes to it, or remove %s", names, names)
}

// checkFileURL returns why page, where it is a file, cannot be read with what allow.files permits.
func checkFileURL(page string, files []string) error {
	if !strings.HasPrefix(page, filesource.Scheme+":") {
		return nil
	}
	return filesource.Check(page, files)
}

// entryLine returns the line in which entry i of list begins.
func (d *decoder) entryLine(i int, list string) int {
	return d.positionOfPath(fmt.Sprintf("%s[%d]", list, i)).line
}
