package slack

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/pipeline/templates"
	"github.com/vokter/vokter/test/slackfake"
)

// blockPart is a block, or a part of one, as it is on the wire.
type blockPart struct {
	Type, Text, URL string
	Style           struct{ Bold, Strike bool }
	Elements        []blockPart
}

// leafParts returns all parts of the blocks of m that have no others in them.
func leafParts(t *testing.T, m slackfake.Message) []blockPart {
	t.Helper()
	var blocks []blockPart
	if err := json.Unmarshal(m.Blocks, &blocks); err != nil {
		t.Fatalf("%v: %s", err, m.Blocks)
	}
	var leaves []blockPart
	for list := blocks; len(list) > 0; list = list[1:] {
		if len(list[0].Elements) == 0 {
			leaves = append(leaves, list[0])
			continue
		}
		list = append(list[:1:1], append(slices.Clone(list[0].Elements), list[1:]...)...)
	}
	return leaves
}

// deliver delivers n in a way, and returns what was posted.
func deliver(t *testing.T, fake *slackfake.Slack, s *Slack, n pipeline.Notification) slackfake.Message {
	t.Helper()
	before := len(fake.Messages())
	if err := s.Deliver(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	all := fake.Messages()
	if len(all) != before+1 {
		t.Fatalf("%d messages were posted, want 1", len(all)-before)
	}
	return all[before]
}

// TestHostileText: whatever a page says arrives as the text of text elements, and nothing
// of it as markup.
func TestHostileText(t *testing.T) {
	const hostile = "<!channel> *x* & <http://evil|bank.example> :boom: %41 <@U1> `y`"
	n := sample()
	n.Title = "Bank " + hostile
	n.Diffs = []pipeline.Diff{{Event: pipeline.Removed, Keyword: "bank.example", Text: hostile, Snippet: "Before " + hostile + " behind"}}
	for _, way := range []string{"bot", "webhook"} {
		fake := slackfake.Start(t, nil)
		m := deliver(t, fake, bothKinds(fake, "C1")[way], n)
		quoted, title := "", ""
		for _, p := range leafParts(t, m) {
			switch {
			case p.Type == "link":
				title = p.Text
				if p.URL != n.URL {
					t.Errorf("%s: a link leads to %q, want %q", way, p.URL, n.URL)
				}
			case p.Type != "text":
				t.Errorf("%s: there is a part of type %q", way, p.Type)
			case p.Style.Bold && p.Text == "bank.example" && !p.Style.Strike: // of the line itself
				quoted = ""
			default:
				quoted += p.Text
			}
		}
		if quoted != "Before "+hostile+" behind" || title != n.Title {
			t.Errorf("%s: the quotation is %q, the title %q", way, quoted, title)
		}
		want := "removed: bank.example: Bank &lt;!channel&gt; *x* &amp; &lt;http://evil|bank.example&gt; :boom: %41 &lt;@U1&gt; `y` https://example.com/item?a=b&amp;c=d"
		if m.Text != want || m.Markup || m.Unfurls {
			t.Errorf("%s: the text is %q, with markup %v, unfurled %v, want %q", way, m.Text, m.Markup, m.Unfurls, want)
		}
	}
}

// TestStyles: the keyword is bold, what was removed is struck, what was added is not.
func TestStyles(t *testing.T) {
	fake := slackfake.Start(t, nil)
	n := sample()
	n.Diffs = []pipeline.Diff{
		{Event: pipeline.Added, Keyword: "out of stock", Text: "Out", Snippet: "Zeus. Out of stock."},
		{Event: pipeline.Removed, Keyword: "in stock", Text: "In", Snippet: "Zeus. In stock."},
	}
	var got []string
	for _, p := range leafParts(t, deliver(t, fake, bothKinds(fake, "C1")["bot"], n)) {
		got = append(got, fmt.Sprintf("%s%s%s", strings.Repeat("*", btoi(p.Style.Bold)), strings.Repeat("~", btoi(p.Style.Strike)), p.Text))
	}
	want := []string{
		"*added: out of stock; removed: in stock", "\n", "Zeus & Co",
		"➕ added ", "*out of stock", "Zeus. ", "*Out of stock", ".",
		"➖ removed ", "*in stock", "Zeus. ", "*~In", "* stock", ".",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestBudget: however much there is to say, Slack takes it, and what is left out is
// counted.
func TestBudget(t *testing.T) {
	for name, text := range map[string]string{
		"short": "word", "long": strings.Repeat("long word ", 200), "wide": strings.Repeat("😀é", 400), "escaped": strings.Repeat("<&>", 400),
	} {
		n := sample()
		n.Title, n.Diffs = strings.Repeat(text, 10), nil
		n.URL = "https://example.com/?" + strings.Repeat("a=b&", 480)
		for i := range 60 {
			snippet := fmt.Sprintf("%s Argus%d %s", text, i, text)
			n.Diffs = append(n.Diffs, pipeline.Diff{Event: pipeline.Added, Keyword: fmt.Sprintf("argus%d", i), Text: snippet, Snippet: snippet, Offset: i})
		}
		for _, way := range []string{"bot", "webhook"} {
			fake := slackfake.Start(t, nil)
			m := deliver(t, fake, bothKinds(fake, "C1")[way], n)
			total, lines, foot := 0, 0, ""
			for _, p := range leafParts(t, m) {
				total += render.UTF16(p.Text) + render.UTF16(p.URL)
				lines += strings.Count(p.Text, "➕")
				foot = p.Text
			}
			if total > maxBlockChars || lines == 0 || foot != fmt.Sprintf("and %d more", 60-lines) {
				t.Errorf("%s, %s: %d characters, %d of 60 differences, and in the end %q", way, name, total, lines, foot)
			}
			if utf8.RuneCountInString(m.Text) >= 300 || !utf8.ValidString(m.Text) || strings.HasSuffix(m.Text, "&") {
				t.Errorf("%s, %s: the text is %q", way, name, m.Text)
			}
		}
	}
}

// TestMetadata: the ID of the notification goes with what a bot posts.
func TestMetadata(t *testing.T) {
	fake := slackfake.Start(t, nil)
	got := string(deliver(t, fake, bothKinds(fake, "C1")["bot"], sample()).Metadata)
	if want := `{"event_type":"vokter.notification.v1","event_payload":{"id":"N1"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestLayoutNeverCostsAnAlert: what Slack does not take as it is arrives as plain text in
// the same attempt, and the attempt says so.
func TestLayoutNeverCostsAnAlert(t *testing.T) {
	for way, word := range map[string]string{"bot": "invalid_blocks", "webhook": "invalid_payload"} {
		fake := slackfake.Start(t, nil)
		s := bothKinds(fake, "C1")[way]
		fake.Script("C1", slackfake.Answer{Error: word})
		a := &testAttempt{}
		if err := s.Deliver(pipeline.WithAttempt(t.Context(), a), sample()); err != nil {
			t.Fatalf("%s: %v", way, err)
		}
		m := fake.Messages()
		want := "added: stock: Zeus &amp; Co https://example.com/item?a=b&amp;c=d"
		if len(m) != 1 || m[0].Blocks != nil || m[0].Metadata != nil || m[0].Text != want || m[0].Markup || m[0].Unfurls {
			t.Errorf("%s: got %+v, want the text %q", way, m, want)
		}
		if len(a.degraded) != 1 || !strings.Contains(a.degraded[0], word) {
			t.Errorf("%s: it is degraded for %q", way, a.degraded)
		}
		// The second refusal is the end of the attempt, and what it says counts.
		for _, tt := range []struct {
			again slackfake.Answer
			class failure.Class
		}{
			{slackfake.Answer{Error: word}, failure.ClassRefused},
			{slackfake.RateLimited("5"), failure.ClassLimited},
			{slackfake.Answer{Error: "channel_not_found"}, failure.ClassGone},
		} {
			fake.Script("C1", slackfake.Answer{Error: word}, tt.again)
			before := len(fake.Requests())
			err := s.Deliver(pipeline.WithAttempt(t.Context(), a), sample())
			if class, _ := failure.ClassOf(err); err == nil || class != tt.class || len(fake.Requests()) != before+2 || len(a.degraded) != 1 {
				t.Errorf("%s: got %v of class %d after %d requests, want class %d", way, err, class, len(fake.Requests())-before, tt.class)
			}
		}
	}
}

// TestTemplate: what the operator wrote is markup, the values in it are not.
func TestTemplate(t *testing.T) {
	n := sample()
	n.Title = "<!channel> & co"
	compile := func(source string) render.Template {
		compiled, err := render.CompileTemplate("template", templates.New(source))
		if err != nil {
			t.Fatal(err)
		}
		return compiled
	}
	tmpl := compile("*{{.title}}* <{{.url}}|look>")
	for _, way := range []string{"bot", "webhook"} {
		fake := slackfake.Start(t, nil)
		s := bothKinds(fake, "C1")[way]
		s.template = tmpl
		m := deliver(t, fake, s, n)
		want := "*&lt;!channel&gt; &amp; co* <https://example.com/item?a=b&amp;c=d|look>"
		if m.Text != want || !m.Markup || m.Blocks != nil || m.Unfurls || (m.Metadata == nil) != m.Webhook {
			t.Errorf("%s: got %+v, want %q", way, m, want)
		}
		// One that cannot be used does not cost the alert.
		for _, source := range []string{"{{.nothing}}", strings.Repeat("long ", 800)} {
			s.template = compile(source)
			a := &testAttempt{}
			if err := s.Deliver(pipeline.WithAttempt(t.Context(), a), n); err != nil {
				t.Fatal(err)
			}
			all := fake.Messages()
			if last := all[len(all)-1]; last.Blocks == nil || last.Markup || len(a.degraded) != 1 || !strings.Contains(a.degraded[0], "the template") {
				t.Errorf("%s, %.20s: got %+v, degraded for %q", way, source, last, a.degraded)
			}
		}
	}
}

const (
	testToken = "xoxb-123-SECRETSECRET"
	testHook  = "https://hooks.slack.com/services/T0/B0/SECRETSECRET"
)

func TestConfig(t *testing.T) {
	type fields = []string
	for name, tt := range map[string]struct {
		token, channel, api, hook string
		thread                    bool
		template                  string
		wrong                     fields
	}{
		"bot":                    {token: testToken, channel: "C1"},
		"bot with all":           {token: testToken, channel: "#alerts", api: "http://127.0.0.1:1/api", thread: true, template: "{{.title}}"},
		"bot that rotates":       {token: "xoxe.xoxb-1-abcdefgh", channel: "C1"},
		"webhook":                {hook: testHook},
		"nothing":                {wrong: fields{"token"}},
		"only thread":            {thread: true, wrong: fields{"token"}},
		"no channel":             {token: testToken, wrong: fields{"channel"}},
		"no token":               {channel: "C1", wrong: fields{"token"}},
		"token of an app":        {token: "xapp-1-SECRETSECRET", channel: "C1", wrong: fields{"token"}},
		"token with a blank":     {token: testToken + "\n", channel: "C1", wrong: fields{"token"}},
		"channel with a blank":   {token: testToken, channel: " C1", wrong: fields{"channel"}},
		"api without a scheme":   {token: testToken, channel: "C1", api: "slack.com/api", wrong: fields{"api_url"}},
		"api with a query":       {token: testToken, channel: "C1", api: "https://slack.com/api?SECRET=1", wrong: fields{"api_url"}},
		"api with a password":    {token: testToken, channel: "C1", api: "https://a:SECRETSECRET@slack.com/api", wrong: fields{"api_url"}},
		"bot and webhook":        {token: testToken, channel: "C1", hook: testHook, wrong: fields{"token", "channel"}},
		"webhook with options":   {hook: testHook, thread: true, api: "https://slack.com/api/", wrong: fields{"thread", "api_url"}},
		"webhook of no host":     {hook: "https:///SECRET", wrong: fields{"webhook_url"}},
		"webhook that is no URL": {hook: "https://%zz/SECRET", wrong: fields{"webhook_url"}},
		"template":               {hook: testHook, template: "{{range 9}}{{end}}", wrong: fields{"template"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := Config{
				Token: registry.NewSecret(tt.token), Channel: tt.channel, APIURL: tt.api, WebhookURL: registry.NewSecret(tt.hook),
				Thread: tt.thread, Template: templates.New(tt.template),
			}
			s, err := New(c)
			if len(tt.wrong) == 0 {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil {
				t.Fatalf("got %v, want errors of %v", s, tt.wrong)
			}
			if got, want := strings.Count(err.Error(), "\n")+1, len(tt.wrong); got != want {
				t.Errorf("%d errors, want %d: %v", got, want, err)
			}
			for _, f := range tt.wrong {
				if !strings.Contains("\n"+err.Error(), "\n"+f+": ") {
					t.Errorf("%v does not name %s", err, f)
				}
			}
			if _, ok := errors.AsType[*pipeline.FieldError](err); !ok {
				t.Errorf("%T is no FieldError", err)
			}
			if strings.Contains(err.Error(), "SECRET") {
				t.Errorf("a secret is in %v", err)
			}
		})
	}
}

func TestRefusedAddressNamesTheFlag(t *testing.T) {
	for _, s := range []*Slack{newSlack(Config{Token: registry.NewSecret(testToken), Channel: "C1", APIURL: "http://127.0.0.1:1/"}, nil), newSlack(Config{WebhookURL: registry.NewSecret("http://127.0.0.1:1/")}, nil)} {
		err := s.Deliver(t.Context(), pipeline.Notification{ID: "x"})
		if _, ok := errors.AsType[*outbound.AddressError](err); !ok || !strings.Contains(err.Error(), "allow: {sinks: [127.0.0.1/32]}") {
			t.Errorf("got %v, want an AddressError that names the flag", err)
		}
	}
}

func TestDefaults(t *testing.T) {
	bot := newSlack(Config{Token: registry.NewSecret(testToken), Channel: "C1"}, nil)
	if perSecond, burst := bot.Rate(); bot.apiURL != defaultAPI || bot.thread || perSecond != 1 || burst != 3 {
		t.Errorf("got %q, threads %v, and the rate %v, %d, want the API of Slack, none, and 1, 3", bot.apiURL, bot.thread, perSecond, burst)
	}
}
