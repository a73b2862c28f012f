package webhook

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

func TestValidate(t *testing.T) {
	for _, tt := range []struct {
		url, secret string
		fields      []string
	}{
		{"https://example.com/hook?x=y", "", nil},
		{"http://user:password@[::1]:8080", "whsec_c2VjcmV0", nil},
		{"", "", []string{"url"}},
		{"example.com/hook", "", []string{"url"}},
		{"ftp://example.com/", "", []string{"url"}},
		{"https://", "", []string{"url"}},
		{"https://example.com:port/", "", []string{"url"}},
		{"https://%zz/SECRETPATH", "", []string{"url"}},
		{"https://example.com/", "whsec_", []string{"secret"}},
		{"mailto:me", "whsec_SECRET!", []string{"url", "secret"}},
	} {
		_, err := New(Config{URL: registry.NewSecret(tt.url), Secret: registry.NewSecret(tt.secret)})
		if (err == nil) != (len(tt.fields) == 0) {
			t.Errorf("%q: got %v, want errors of %v", tt.url, err, tt.fields)
			continue
		}
		if err == nil {
			continue
		}
		for _, f := range tt.fields {
			if !strings.Contains(err.Error(), f+": ") {
				t.Errorf("%q: %v does not name %s", tt.url, err, f)
			}
		}
		if _, ok := errors.AsType[*pipeline.FieldError](err); !ok {
			t.Errorf("%q: %T is no FieldError", tt.url, err)
		}
		if strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%q: a secret is in %v", tt.url, err)
		}
	}
}

func TestRefusedAddressNamesTheFlag(t *testing.T) {
	w, err := New(Config{URL: registry.NewSecret("http://127.0.0.1:1/")})
	if err != nil {
		t.Fatal(err)
	}
	err = w.Deliver(t.Context(), pipeline.Notification{ID: "x"})
	if _, ok := errors.AsType[*outbound.AddressError](err); !ok || !strings.Contains(err.Error(), "--allow 127.0.0.1/32") {
		t.Errorf("got %v, want an AddressError that names the flag", err)
	}
}

func TestRegister(t *testing.T) {
	var r registry.Registry
	Register(&r)
	build, ok := r.LookupSink("webhook")
	if !ok {
		t.Fatal("webhook is not registered")
	}
	decode := func(c Config) registry.Decode {
		return func(v any) error { *v.(*Config) = c; return nil }
	}
	env := registry.Env{AllowSinks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	good := Config{URL: registry.NewSecret("https://example.com/"), Secret: registry.NewSecret("new"), OldSecret: registry.NewSecret("old")}
	a, err := build(decode(good), env)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(a.(*Webhook).keys); got != 2 {
		t.Errorf("%d keys, want 2", got)
	}
	b, err := build(decode(good), env)
	if err != nil {
		t.Fatal(err)
	}
	if a.(*Webhook).post.Client.Transport != b.(*Webhook).post.Client.Transport {
		t.Error("two webhooks do not share their connections")
	}
	c, err := build(decode(good), registry.Env{})
	if err != nil {
		t.Fatal(err)
	}
	if a.(*Webhook).post.Client.Transport == c.(*Webhook).post.Client.Transport {
		t.Error("webhooks that may reach different networks share their connections")
	}
	bad := good
	bad.OldSecret = registry.NewSecret("whsec_?")
	if s, err := build(decode(bad), env); err == nil || s != nil || !strings.Contains(err.Error(), "old_secret: ") {
		t.Errorf("got %v, %v, want an error of old_secret", s, err)
	}
	failure := errors.New("line 3")
	if _, err := build(func(any) error { return failure }, env); !errors.Is(err, failure) {
		t.Errorf("got %v, want what decoding said", err)
	}
}
