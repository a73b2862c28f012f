package config

import (
	"slices"
	"strings"
	"testing"
)

// TestTags: a subscription has its own tags and those of its document.
func TestTags(t *testing.T) {
	c, err := Parse("vokter.yaml", []byte(`
sinks: {ops: {fake: {url: x}}}
documents:
  - {url: "https://example.com/a", tags: [shop, legal]}
subscriptions:
  - {url: "https://EXAMPLE.com/a", keywords: [k], sinks: [ops], tags: [legal, team-a]}
  - {url: "https://example.com/b", keywords: [k], sinks: [ops]}
`), fakeOptions(nil))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Router.Subscriptions[0].Tags; !slices.Equal(got, []string{"legal", "team-a", "shop"}) {
		t.Errorf("tags %q", got)
	}
	if got := c.Router.Subscriptions[1].Tags; len(got) > 0 {
		t.Errorf("tags %q of another page", got)
	}
	if len(c.Router.Documents) > 0 {
		t.Errorf("an entry with tags alone keeps %v", c.Router.Documents)
	}
}

// TestTagsThatAreRefused: a tag is one word.
func TestTagsThatAreRefused(t *testing.T) {
	for tags, want := range map[string]string{
		"[a b]": "tags[0]: \"a b\" has a blank", "['']": "tags[0] is empty", "[a, a]": "tags[1]: \"a\" is listed twice", "['a,b']": "has a blank, a comma",
	} {
		file := "sinks: {ops: {fake: {url: x}}}\nsubscriptions:\n  - {url: 'https://example.com/a', keywords: [k], sinks: [ops], tags: " + tags + "}\n"
		if _, err := Parse("c.yaml", []byte(file), fakeOptions(nil)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", tags, err, want)
		}
	}
}
