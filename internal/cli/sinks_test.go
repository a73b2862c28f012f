package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vokter/vokter/config"
)

// exampleValues stand for what the examples of sinks take from the environment.
var exampleValues = map[string]string{
	"SLACK_TOKEN": "xoxb-1234567890-abcdef", "TELEGRAM_TOKEN": "123456789:AAF-5bDkYz0123456789abcdefghijklmno",
}

// Each kind of sink has a page in docs/sinks, with an example that this program takes.
func TestExamplesOfSinks(t *testing.T) {
	a := &app{stdout: new(buffer), stderr: new(buffer)}
	for _, kind := range a.plugins().SinkKinds() {
		page, err := os.ReadFile(filepath.Join("..", "..", "docs", "sinks", kind+".md"))
		if err != nil {
			t.Errorf("%s has no page: %v", kind, err)
			continue
		}
		_, rest, _ := strings.Cut(string(page), "```yaml\n")
		example, _, ok := strings.Cut(rest, "```")
		if !ok || !strings.Contains(example, kind+":") {
			t.Errorf("the page of %s shows no example of it", kind)
			continue
		}
		c, err := parseExample(a, kind+".md", example)
		if err != nil || len(c.Router.Sinks) == 0 {
			t.Errorf("the example of %s: got %v", kind, err)
		}
	}
}

// parseExample reads a configuration whose variables have some value of their sort.
func parseExample(a *app, name, example string) (*config.Config, error) {
	return config.Parse(name, []byte(example), config.Options{
		Registry: a.plugins(),
		LookupEnv: func(name string) (string, bool) {
			if v, ok := exampleValues[name]; ok {
				return v, true
			}
			if strings.HasSuffix(name, "_URL") {
				return "https://example.com/hooks/0123456789abcdef", true
			}
			return "whsec_c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0", true
		},
	})
}

// Each sink for people takes a template, which is tried.
func TestSinksForPeopleTakeTemplates(t *testing.T) {
	a := &app{stdout: new(buffer), stderr: new(buffer)}
	for _, kind := range []string{"slack", "email", "discord", "telegram", "teams", "mattermost", "ntfy", "gotify", "matrix"} {
		example, err := os.ReadFile(filepath.Join("..", "..", "sinks", kind, "example.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseExample(a, kind, string(example)+"      template: '{{.headline}} {{.url}} {{.reason}}'\n"); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		_, err = parseExample(a, kind, string(example)+"      template: '{{.titel}}'\n")
		if err == nil || !strings.Contains(err.Error(), kind+".template: fails for an ordinary notification: line 1") {
			t.Errorf("%s: got %v, want a template that fails", kind, err)
		}
	}
}

// The examples of the README, the guide and the index are valid as well, templates included.
func TestExamplesOfReadme(t *testing.T) {
	secrets := t.TempDir()
	for name, secret := range map[string]string{"slack": "xoxb-1-2-abc", "hook": "whsec_c2VjcmV0c2VjcmV0c2VjcmV0"} {
		if err := os.WriteFile(filepath.Join(secrets, name), []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a := &app{stdout: new(buffer), stderr: new(buffer)}
	for _, path := range []string{"README.md", "docs/guide.md", "docs/sinks/README.md"} {
		page, err := os.ReadFile(filepath.Join("..", "..", path))
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(strings.ReplaceAll(string(page), "/run/secrets", secrets), "```yaml\n")
		if len(parts) < 3 {
			t.Errorf("%s has %d examples", path, len(parts)-1)
		}
		for _, part := range parts[1:] {
			example, _, _ := strings.Cut(part, "```")
			if strings.HasPrefix(example, "sources:") { // its sinks stand in another one
				example = "sinks: {ops: {stdout: {}}}\n" + example
			}
			if _, err := config.Parse(path, []byte(example), config.Options{Registry: a.plugins()}); err != nil {
				t.Errorf("got %v of\n%s", err, example)
			}
		}
	}
}
