package config

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/registry"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// fakeConfig has a field of every type that a plugin may have.
type fakeConfig struct {
	URL    string          `yaml:"url"`
	Secret registry.Secret `yaml:"secret"`
	Count  int             `yaml:"count"`
	On     bool            `yaml:"on"`
	Nested struct {
		Depth *int              `yaml:"depth"`
		Tags  map[string]string `yaml:"tags"`
	} `yaml:"nested"`
	Until time.Time `yaml:"until"`
	fakeEmbedded
}

type fakeEmbedded struct {
	Every time.Duration `yaml:"every"`
}

type fakeSink struct {
	fakeConfig
	env registry.Env
}

func (*fakeSink) Deliver(context.Context, pipeline.Notification) error { return nil }

type fakeSource string

func (fakeSource) Run(context.Context, pipeline.Emit) error { return nil }

func fakeRegistry() *registry.Registry {
	var r registry.Registry
	r.Sinks.Add("fake", func(decode registry.Decode, env registry.Env) (pipeline.Sink, error) {
		var c fakeConfig
		if err := decode(&c); err != nil {
			return nil, err
		}
		switch c.URL {
		case "":
			return nil, &pipeline.FieldError{Field: "url", Reason: "is missing; add one"}
		case "refused":
			return nil, errors.Join(&pipeline.FieldError{Field: "url", Reason: "is refused"}, errors.New("something else"))
		case "broken":
			return nil, fmt.Errorf("cannot work: %w, %w", errors.New("a"), errors.New("b"))
		}
		return &fakeSink{c, env}, nil
	})
	r.Sources.Add("fake", func(decode registry.Decode, env registry.Env) (pipeline.Source, error) {
		var c struct {
			URL string `yaml:"url"`
		}
		if err := decode(&c); err != nil {
			return nil, err
		}
		if c.URL == "refused" {
			return nil, &pipeline.FieldError{Field: "url", Reason: "is refused"}
		}
		return fakeSource(c.URL), nil
	})
	r.Transports.Add("kafka", func() registry.Transport { return new(fakeTransport) })
	return &r
}

// fakeTransport has settings such as those of a cluster.
type fakeTransport struct {
	Brokers        []string      `yaml:"brokers"`
	Partitions     int           `yaml:"partitions"`
	CreateTopics   *bool         `yaml:"create_topics"`
	SessionTimeout time.Duration `yaml:"session_timeout"`
	Group          string        `yaml:"group"`
	SASL           struct {
		Mechanism string          `yaml:"mechanism"`
		User      string          `yaml:"user"`
		Password  registry.Secret `yaml:"password"`
	} `yaml:"sasl"`
}

func (*fakeTransport) Open() (flow.Transport, error) { return nil, nil }

// Validate refuses what the tests write for it.
func (k *fakeTransport) Validate() error {
	var errs []error
	if len(k.Brokers) == 0 {
		errs = append(errs, &pipeline.FieldError{Field: "brokers", Reason: "is missing"})
	}
	for i, b := range k.Brokers {
		if b == "refused" {
			errs = append(errs, &pipeline.FieldError{Field: fmt.Sprintf("brokers[%d]", i), Reason: "is refused"})
		}
	}
	if k.Partitions < 0 {
		errs = append(errs, &pipeline.FieldError{Field: "partitions", Reason: "is too small"})
	}
	if k.SASL.Mechanism != "" && k.SASL.Password.IsZero() {
		errs = append(errs, &pipeline.FieldError{Field: "sasl.password", Reason: "is missing"})
	}
	return errors.Join(errs...)
}

func fakeOptions(env map[string]string) Options {
	return Options{Registry: fakeRegistry(), LookupEnv: func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	}}
}

var testEnv = map[string]string{
	"TEAM_URL": "https://team.example.com/", "PORT": "9000\nkeywords: [x]", "EVIL": "a: [b", "STEM": "true", "OFFSET": "7",
	"A": "",
}

// TestMistakes holds what is said about each file in testdata to its golden file.
func TestMistakes(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no files:", err)
	}
	for _, path := range files {
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		t.Run(name, func(t *testing.T) {
			_, err := Load(path, fakeOptions(testEnv))
			got := "ok"
			if err != nil {
				got = err.Error()
			}
			golden := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(got+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got+"\n" != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestLoad(t *testing.T) {
	o := fakeOptions(testEnv)
	extra := netip.MustParsePrefix("127.0.0.1/32")
	o.Allow = []netip.Prefix{extra}
	c, err := Load("testdata/good.yaml", o)
	if err != nil {
		t.Fatal(err)
	}
	offset := 0
	sinks := c.Router.Sinks
	c.Router.Sinks = nil
	want := &Config{Listen: "127.0.0.1:9000", Router: vokter.Config{
		Dir: "/var/lib/vokter", MinFree: 1e9, Memory: 4e8, Origin: "yaml",
		Fetch: vokter.FetchConfig{Timeout: 30 * time.Second, UserAgent: "shop/1.0 (+https://example.com)",
			MinInterval: 10 * time.Second, Concurrency: 2, Rate: 0.5,
			Allow: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), extra}},
		Delivery:  vokter.DeliveryConfig{Retry: []time.Duration{5 * time.Second, 30 * time.Second, 5 * time.Minute}, DeadAfter: 72 * time.Hour, ExpireAfter: 100 * time.Hour},
		Expire:    vokter.ExpireConfig{After: 20, SelectorGone: true},
		Health:    []string{"ops"},
		Documents: []vokter.Document{{URL: "https://example.com/feed", Keep: true}},
		Subscriptions: []pipeline.Subscription{
			{URL: "https://example.com/terms", Client: "legal", Keywords: []string{"privacy", "personal data"}, Stem: true, Language: "en",
				Interval: pipeline.Every(time.Hour), Sinks: []string{"ops", "team"}, Digest: &pipeline.Digest{Every: pipeline.Duration(time.Hour), Max: 20}, View: pipeline.View{Select: []pipeline.Selector{{CSS: "main"}}}},
			{URL: "HTTPS://Example.com:443/terms#top", Keywords: []string{"privacy"}, Events: []pipeline.Event{pipeline.Removed},
				FilterStopwords: true, MatchCase: true, IgnoreDiacritics: true, Match: "phrase", Near: "row", Moved: true, Language: "en-GB",
				SnippetOffset: &offset, MinChange: pipeline.MinChange{Share: 50}, Sinks: []string{"ops"}, Digest: &pipeline.Digest{Cron: "0 9 * * 1-5 Europe/Berlin"}, View: pipeline.View{
					Select: []pipeline.Selector{{CSS: "main"}}, Remove: []pipeline.Selector{{CSS: ".ad"}, {From: "h2.old", To: "h2.new"}},
					Ignore: []string{`\d+ visitors$`}, Confirm: 2, FlipFlop: 3, Replaced: true, Expect: "absent"}},
			{URL: "https://example.com/other", Keywords: []string{"privacy"}, Sinks: []string{"ops"},
				View: pipeline.View{Select: []pipeline.Selector{{From: "h1"}}}},
		},
	}}
	if len(c.Options) != 2 || c.Options["ops"] == c.Options["team"] {
		t.Errorf("the digests of the sinks are %x", c.Options)
	}
	if len(c.Router.Fetchers) != 1 || c.Router.Fetchers[0] != c.Browser || !reflect.DeepEqual(c.Browser.Config().Allow, want.Router.Fetch.Allow) {
		t.Errorf("the fetchers are %v, and the browser is %+v", c.Router.Fetchers, c.Browser)
	}
	c.Options, c.Router.Fetchers, c.Router.Readers, c.Router.Stemmers, c.Browser = nil, nil, nil, nil, nil
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got\n%+v\nwant\n%+v", c, want)
	}
	for name, want := range map[string][2]string{
		"ops":  {"https://ops.example.com/in", "from a file"},
		"team": {"https://team.example.com/", "s3cret"},
	} {
		s, ok := sinks[name].(*fakeSink)
		if !ok {
			t.Fatalf("sink %s is %T", name, sinks[name])
		}
		if got := [2]string{s.URL, s.Secret.Reveal()}; got != want {
			t.Errorf("sink %s: got %v, want %v", name, got, want)
		}
		if len(s.env.AllowSinks) != 1 || s.env.AllowSinks[0] != extra || s.env.Logger == nil {
			t.Errorf("sink %s: environment %+v", name, s.env)
		}
	}
	if err := c.Router.Validate(); err == nil {
		t.Error("a subscription to sinks that are not there is valid")
	}
	c.Router.Sinks = sinks
	if err := c.Router.Validate(); err != nil {
		t.Errorf("the router refuses what Load accepts: %v", err)
	}
}

func TestErrorsUnwrap(t *testing.T) {
	_, err := Load("testdata/three.yaml", fakeOptions(nil))
	e, ok := errors.AsType[*Error](err)
	if !ok || e.File != "testdata/three.yaml" || e.Line != 4 {
		t.Errorf("got %+v", e)
	}
}

func TestMissingFile(t *testing.T) {
	for path, want := range map[string]string{
		"testdata/none.yml": "testdata/none.yml: the file testdata/none.yml does not exist",
		"testdata":          "testdata: testdata is a directory; name a file in it",
	} {
		if _, err := Load(path, Options{}); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestNoSecretInErrors breaks a file that holds a secret in many places.
func TestNoSecretInErrors(t *testing.T) {
	const secret = "hunter2"
	for _, value := range []string{secret, "5" + secret, "${" + secret, "${" + secret + "-x}", "[" + secret + "]", "{" + secret + ": 1}", "${A:-${" + secret + "}}"} {
		for _, quote := range []string{"", `"`} {
			text := "sinks: {a: {fake: {url: refused, unknown: 1, secret: " + quote + value + quote + "}}}\n"
			if _, err := Parse("c.yaml", []byte(text), fakeOptions(nil)); err == nil || strings.Contains(err.Error(), secret) {
				t.Errorf("%s: got %v", text, err)
			}
		}
	}
	// What stands where there should be a mapping may be meant as the secret in it.
	for _, text := range []string{"sinks: {a: {fake: https://example.com/" + secret + "}}\n", "sinks: {a: https://example.com/" + secret + "}\n", "sinks: " + secret + "\n",
		"sinks: {a: {'https://example.com/" + secret + "': {}}}\n", "sinks: {a: {fake: {url: x, xoxb-" + secret + ": y}}}\n"} {
		if _, err := Parse("c.yaml", []byte(text), fakeOptions(nil)); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

func TestExpand(t *testing.T) {
	env := map[string]string{"A": "1", "EMPTY": "", "NESTED": "${A}"}
	lookup := func(n string) (string, bool) { v, ok := env[n]; return v, ok }
	for s, want := range map[string]string{
		"": "", "a": "a", "$": "$", "$A": "$A", "$$": "$$", "a$": "a$", "^a$|$b": "^a$|$b",
		"${A}": "1", "x${A}y${A}z": "x1y1z", "${B:-d}": "d", "${B:-}": "", "${EMPTY}": "", "${EMPTY:-d}": "d", "${A:-d}": "1",
		"$${A}": "${A}", "$$${A}": "$${A}", "${NESTED}": "${A}", "${B:-a b}": "a b", "${B:-:-}": ":-",
	} {
		if got, err := expandVariables(s, lookup); err != nil || got != want {
			t.Errorf("expand(%q) = %q, %v, want %q", s, got, err, want)
		}
	}
	for _, s := range []string{"${B}", "${", "${}", "${1A}", "${A", "${A B}", "${:-x}", "${B:-${A}}", "${A:x}"} {
		if got, err := expandVariables(s, lookup); err == nil {
			t.Errorf("expand(%q) = %q, want an error", s, got)
		}
	}
}

func TestParseDuration(t *testing.T) {
	for s, want := range map[string]time.Duration{"10s": 10 * time.Second, "1h30m": 90 * time.Minute, "2d": 48 * time.Hour, "1d12h": 36 * time.Hour, "0s": 0, "0": 0} {
		if got, err := ParseDuration(s); err != nil || got != want {
			t.Errorf("ParseDuration(%q) = %v, %v, want %v", s, got, err, want)
		}
	}
	for s, want := range map[string]string{
		"10":                         `"10" has no unit; write 10s, 10m or 10h`,
		"-1s":                        `"-1s" is negative; write a duration such as 10s, 5m or 1h`,
		"soon":                       `"soon" is not a duration; write a number and a unit such as 10s, 5m or 1h`,
		"999999999h":                 `"999999999h" is too long; the longest duration is 2562047h`,
		"99999999999999999999h1.9s":  `"99999999999999999999h1.9s" is too long; the longest duration is 2562047h`,
		"99999999999999999999 hours": `"99999999999999999999 hours" is not a duration; write a number and a unit such as 10s, 5m or 1h`,
		"":                           `"" is not a duration; write a number and a unit such as 10s, 5m or 1h`,
	} {
		if _, err := ParseDuration(s); err == nil || err.Error() != want {
			t.Errorf("ParseDuration(%q): got %v, want %s", s, err, want)
		}
	}
}

func TestParseRate(t *testing.T) {
	for s, want := range map[string]rate{"1/s": 1, "1000/s": 1000, "30/m": 0.5, "3600/h": 1, "0.5/s": 0.5, " 2 / s ": 2} {
		if got, err := parseRate(s); err != nil || got != want {
			t.Errorf("parseRate(%q) = %v, %v, want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "1", "1/", "/s", "0/s", "-1/s", "1/d", "x/s", "NaN/s", "Inf/s", "1/s/s"} {
		if got, err := parseRate(s); err == nil {
			t.Errorf("parseRate(%q) = %v, want an error", s, got)
		}
	}
}

func TestParseSize(t *testing.T) {
	for s, want := range map[string]int64{
		"256MB": 256e6, "1GB": 1e9, "1GiB": 1 << 30, "1.5 KiB": 1536, "1B": 1, "20KB": 20_000, "8MiB": 8 << 20, "2TB": 2e12, "1TiB": 1 << 40,
	} {
		if got, err := ParseSize(s); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v, want %d", s, got, err, want)
		}
	}
	if _, err := ParseSize("256"); err == nil || err.Error() != `"256" has no unit; write 256MB or 256GB` {
		t.Errorf("without a unit: %v", err)
	}
	for _, s := range []string{"", "MB", "0", "0MB", "-1MB", "0.1B", "1mb", "1M", "1EB", "1MBB", "NaNMB", "InfGB", "1e30TB", "x"} {
		if got, err := ParseSize(s); err == nil {
			t.Errorf("ParseSize(%q) = %d, want an error", s, got)
		}
	}
}

func TestExpireAfter(t *testing.T) {
	for text, want := range map[string]int{"": 0, "expire: {after: 3}": 3, "expire: {after: never}": -1, `expire: {after: "${OFFSET}"}`: 7} {
		c, err := Parse("c.yaml", []byte(text), fakeOptions(testEnv))
		if err != nil || c.Router.Expire.After != want {
			t.Errorf("%s: got %+v, %v, want %d", text, c, err, want)
		}
	}
	for _, text := range []string{`expire: {after: "3"}`, "expire: {after: -1}", "expire: {after: 1.5}", "expire: {after: [3]}", "expire: {after: }"} {
		if _, err := Parse("c.yaml", []byte(text), fakeOptions(nil)); err == nil || !strings.HasPrefix(err.Error(), "c.yaml:1:") {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

func TestCheckListen(t *testing.T) {
	for _, s := range []string{"127.0.0.1:9000", "localhost:0", "[::1]:80", "127.8.8.8:1", ":9000", "0.0.0.0:1", "[::]:1", "10.0.0.1:1", "[fe80::1%eth0]:1", "vokter.example:1", "my-host:1"} {
		if err := checkListen(s); err != nil {
			t.Errorf("checkListen(%q): %v", s, err)
		}
	}
	for _, s := range []string{"", "9000", "127.0.0:1", "256.0.0.1:1", "a b:1", "http://127.0.0.1:1", "::1:1", "127.0.0.1", "127.0.0.1:", "127.0.0.1:70000", "127.0.0.1:-1"} {
		if err := checkListen(s); err == nil {
			t.Errorf("checkListen(%q) accepts it", s)
		}
	}
}

func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("c.yaml", data, fakeOptions(testEnv))
		inPieces, again := parseInPieces(1, "c.yaml", data, fakeOptions(testEnv))
		if fmt.Sprint(again) != fmt.Sprint(err) {
			t.Errorf("as a whole: %v\nin pieces: %v", err, again)
		}
		if err == nil {
			if !reflect.DeepEqual(inPieces.Router.Subscriptions, c.Router.Subscriptions) || fmt.Sprint(inPieces.Warnings) != fmt.Sprint(c.Warnings) {
				t.Errorf("as a whole: %+v %v\nin pieces: %+v %v", c.Router.Subscriptions, c.Warnings, inPieces.Router.Subscriptions, inPieces.Warnings)
			}
			if err := c.Router.Validate(); err != nil {
				t.Errorf("the router refuses what Parse accepts: %v", err)
			}
			return
		}
		es, ok := errors.AsType[Errors](err)
		if !ok || len(es) == 0 {
			t.Fatalf("got %T: %v", err, err)
		}
		lines := strings.Count(string(data), "\n") + strings.Count(string(data), "\r") + 1
		for _, e := range es {
			if e.Line < 1 || e.Column < 1 || e.Line > lines+1 || strings.ContainsAny(e.Error(), "\n\r") {
				t.Errorf("a mistake without a place in %d lines: %+v", lines, e)
			}
		}
	})
}

func TestPagesThatArePushed(t *testing.T) {
	c, err := Parse("f", []byte(`
documents: [{url: https://example.com/a, keep: true, interval: never}, {url: https://example.com/b, keep: true}]
sources: {crm: {fake: {url: x}}}
sinks: {out: {fake: {url: x}}}
subscriptions: [{url: https://example.com/c, keywords: [a], sinks: [out], interval: never}]
`), fakeOptions(nil))
	if err != nil {
		t.Fatal(err)
	}
	if d := c.Router.Documents; len(d) != 2 || d[0].Interval != pipeline.Never || !d[1].Interval.IsZero() {
		t.Errorf("got documents %+v", d)
	}
	if s := c.Router.Subscriptions; len(s) != 1 || s[0].Interval != pipeline.Never {
		t.Errorf("got subscriptions %+v", s)
	}
	if s := c.Router.Sources; len(s) != 1 || s["crm"] != fakeSource("x") {
		t.Errorf("got sources %+v", s)
	}
	if _, err := vokter.New(c.Router); err != nil {
		t.Errorf("New: %v", err)
	}
}

// TestTimeoutOfASink: it stands beside the kind, as the rate does, and takes nothing of the sink away.
func TestTimeoutOfASink(t *testing.T) {
	c, err := Parse("c.yaml", []byte("sinks: {a: {fake: {url: x}, timeout: 1m}, b: {fake: {url: x}, rate: 1/s, timeout: 90s}, c: {fake: {url: x}}}"), Options{Registry: fakeRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]time.Duration{"a": time.Minute, "b": 90 * time.Second, "c": 0} {
		s := c.Router.Sinks[name]
		_, _, rated := registry.RateOf(s)
		if got := registry.TimeoutOf(s); got != want || rated != (name == "b") {
			t.Errorf("%s: timeout %v, with a rate: %v; want %v", name, got, rated, want)
		}
	}
}

// TestFilesWithoutAnEnd reads a device that never ends, as a symlink in the place of a secret
// may name one.
func TestFilesWithoutAnEnd(t *testing.T) {
	if _, err := os.Stat("/dev/zero"); err != nil {
		t.Skip("this system has no /dev/zero")
	}
	if _, err := readFile("/dev/zero"); err == nil || !strings.Contains(err.Error(), "larger than 16 MiB") {
		t.Errorf("got %v, want that it is too large", err)
	}
}

// TestSelectorsOfItems has selectors that cannot name items, and one of an array in JSON.
func TestSelectorsOfItems(t *testing.T) {
	for _, sel := range []string{"jq:.a[]", "lines:1-2", "re:a"} {
		_, err := Parse("c.yaml", []byte("sinks: {out: {fake: {url: x}}}\nsubscriptions:\n- {url: 'https://example.com/', keywords: [k], sinks: [out], items: true, select: '"+sel+"'}\n"), fakeOptions(nil))
		if refused := err != nil && strings.Contains(err.Error(), "items: items are those of a feed or of an array in JSON"); refused != (sel != "jq:.a[]") {
			t.Errorf("%s: got %v", sel, err)
		}
	}
}
