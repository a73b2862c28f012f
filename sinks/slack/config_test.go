package slack

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

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
				Thread: tt.thread, Template: registry.Template(tt.template),
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
	for _, s := range []*Slack{made(Config{Token: registry.NewSecret(testToken), Channel: "C1", APIURL: "http://127.0.0.1:1/"}, nil), made(Config{WebhookURL: registry.NewSecret("http://127.0.0.1:1/")}, nil)} {
		err := s.Deliver(t.Context(), pipeline.Notification{ID: "x"})
		if _, ok := errors.AsType[*outbound.AddressError](err); !ok || !strings.Contains(err.Error(), "--allow 127.0.0.1/32") {
			t.Errorf("got %v, want an AddressError that names the flag", err)
		}
	}
}

func TestRegister(t *testing.T) {
	var r registry.Registry
	Register(&r)
	build, ok := r.LookupSink("slack")
	if !ok {
		t.Fatal("slack is not registered")
	}
	make := func(c Config, env registry.Env) (*Slack, error) {
		s, err := build(func(v any) error { *v.(*Config) = c; return nil }, env)
		if err != nil {
			if s != nil {
				t.Errorf("got %v beside %v", s, err)
			}
			return nil, err
		}
		return s.(*Slack), nil
	}
	env := registry.Env{AllowSinks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	bot, err := make(Config{Token: registry.NewSecret(testToken), Channel: "C1"}, env)
	if err != nil {
		t.Fatal(err)
	}
	if bot.api != defaultAPI || bot.thread {
		t.Errorf("got %q and %v, want the defaults", bot.api, bot.thread)
	}
	hook, err := make(Config{WebhookURL: registry.NewSecret(testHook)}, env)
	if err != nil {
		t.Fatal(err)
	}
	if bot.post.Client.Transport != hook.post.Client.Transport {
		t.Error("two sinks do not share their connections")
	}
	other, err := make(Config{WebhookURL: registry.NewSecret(testHook)}, registry.Env{})
	if err != nil {
		t.Fatal(err)
	}
	if other.post.Client.Transport == hook.post.Client.Transport {
		t.Error("sinks that may reach different networks share their connections")
	}
	if _, err := make(Config{}, env); err == nil {
		t.Error("an empty configuration is taken")
	}
	failure := errors.New("line 3")
	if _, err := build(func(any) error { return failure }, env); !errors.Is(err, failure) {
		t.Errorf("got %v, want what decoding said", err)
	}
	if perSecond, burst := bot.Rate(); perSecond != 1 || burst != 3 {
		t.Errorf("the rate is %v, %d, want 1, 3", perSecond, burst)
	}
}
