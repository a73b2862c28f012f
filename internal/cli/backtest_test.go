package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
)

// trialResult is what the verb test printed as JSON.
type trialResult struct {
	diffs   []string // "added fox brown: the text @offset"
	options map[string][2]int
	summary map[string]any
}

// tryFiles runs the verb test on two texts.
func tryFiles(t *testing.T, old, new string, args ...string) trialResult {
	t.Helper()
	dir := t.TempDir()
	for name, body := range map[string]string{"a.html": old, "b.html": new} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return parseTrial(t, runCLI(t, slices.Concat([]string{"test", "--old", filepath.Join(dir, "a.html"), "--new", filepath.Join(dir, "b.html"), "--format", "json"}, args)...))
}

func parseTrial(t *testing.T, r result) trialResult {
	t.Helper()
	if r.code != 0 {
		t.Fatalf("got %+v", r)
	}
	out := trialResult{options: make(map[string][2]int)}
	for line := range strings.Lines(r.stdout) {
		var o struct {
			pipeline.Notification
			Option      string
			Setting     string `json:"value"` // in place of that of the Notification
			More, Fewer int
		}
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		switch o.Type {
		case pipeline.NotificationType:
			for _, d := range o.Diffs {
				out.diffs = append(out.diffs, fmt.Sprintf("%s %s: %s", d.Event, d.Keyword, d.Text))
			}
		case "option":
			out.options[o.Option+"="+o.Setting] = [2]int{o.More, o.Fewer}
		default:
			if err := json.Unmarshal([]byte(line), &out.summary); err != nil {
				t.Fatal(err)
			}
		}
	}
	return out
}

// TestTrialOfFiles holds the verb test to the rules of what matches: whole words, phrases that an
// edit completes or destroys, moved, merged and split paragraphs.
func TestTrialOfFiles(t *testing.T) {
	const words = "cats,1000,fox brown"
	filler := "<p>The first of many other words</p><p>The second of some more of them</p><p>The third one, which stays</p>"
	for name, c := range map[string]struct {
		old, new string
		args     []string
		want     []string
	}{
		"a word":                 {"<p>cat</p>", "<p>cats</p>", []string{"--keywords", words}, []string{"added cats: cats"}},
		"a number":               {"<p>it costs 100 coins</p>", "<p>it costs 1000 coins</p>", []string{"--keywords", words}, []string{"added 1000: 1000"}},
		"a part of a word":       {"<p>cat</p>", "<p>cart</p>", []string{"--keywords", "cat,cart,art"}, []string{"removed cat: cat", "added cart: cart"}},
		"a completed phrase":     {"<p>the brown dog and fox</p>", "<p>the brown dog and fox brown</p>", []string{"--keywords", words}, []string{"added fox brown: fox brown"}},
		"a destroyed phrase":     {"<p>the fox brown runs</p>", "<p>the fox runs</p>", []string{"--keywords", words}, []string{"removed fox brown: fox brown"}},
		"a phrase that is split": {"<p>the fox brown runs</p>", "<p>the fox is brown runs</p>", []string{"--keywords", words}, []string{"removed fox brown: fox brown"}},
		"two paragraphs that merge": {"<p>there is a quick fox</p><p>brown and very small</p>", "<p>there is a quick fox brown and very small</p>", []string{"--keywords", words},
			[]string{"added fox brown: fox brown"}},
		"a moved paragraph": {"<p>There were cats</p>" + filler, filler + "<p>There were cats</p>", []string{"--keywords", words}, nil},
		"a moved paragraph, with --moved": {"<p>There were cats</p>" + filler, filler + "<p>There were cats</p>", []string{"--keywords", words, "--moved"},
			[]string{"removed cats: There were cats", "added cats: There were cats"}},
		"a keyword with a comma":     {"<p>x</p>", "<p>red, green</p>", []string{"--keyword", "red, green"}, []string{"added red, green: red, green"}},
		"words in any order":         {"<p>x</p>", "<p>x beta q alpha z</p>", []string{"--keywords", "alpha beta"}, nil},
		"words in any order allowed": {"<p>q</p>", "<p>x beta q alpha z</p>", []string{"--keywords", "alpha beta", "--match", "terms"}, []string{"added alpha beta: x beta q alpha z"}},
		"stop words and stems":       {"<p>x</p>", "<p>x god house</p>", []string{"--keywords", "House of the Gods", "--stem", "--filter-stopwords", "--language", "en"}, []string{"added House of the Gods: god house"}},
		"only what was added":        {"<p>cats</p>", "<p>dogs</p>", []string{"--keywords", "cats,dogs", "--events", "added"}, []string{"added dogs: dogs"}},
		"a selected part":            {"<main>x</main><p>y</p>", "<main>x cats</main><p>y 1000</p>", []string{"--keywords", words, "--select", "main"}, []string{"added cats: cats"}},
		"spacing":                    {"<p>a  cats</p>", "<div>a cats</div>", []string{"--keywords", words}, nil},
		"another script":             {"<p>старый дом</p>", "<p>новый дом</p>", []string{"--keywords", "новый,старый"}, []string{"removed старый: старый", "added новый: новый"}},
		"Argus Panoptes": {"<p>is the of the 100-eyed giant in Greek mythology.</p>", "<p>Argus Panoptes is the name of the 100-eyed giant in Norse mythology.</p>",
			[]string{"--keywords", "the greek,argus panoptes", "--stem", "--filter-stopwords", "--language", "en"}, []string{"removed the greek: Greek", "added argus panoptes: Argus Panoptes is the name"}},
	} {
		if got := tryFiles(t, c.old, c.new, c.args...); !slices.Equal(got.diffs, c.want) {
			t.Errorf("%s: got %q, want %q", name, got.diffs, c.want)
		}
	}
}

// TestTrialOfOptions says what each option would have changed.
func TestTrialOfOptions(t *testing.T) {
	got := tryFiles(t, "<p>Hera</p>", "<p>Hera</p><p>cat</p><p>cats</p><p>Cats</p><p>a café</p>", "--keywords", "cat,cafe")
	want := map[string][2]int{"stem=true": {2, 0}, "ignore_diacritics=true": {1, 0}}
	if fmt.Sprint(got.options) != fmt.Sprint(want) || got.summary["notifications"] != 1.0 || got.summary["differences"] != 1.0 {
		t.Errorf("got %v, want %v; %v", got.options, want, got.summary)
	}
	got = tryFiles(t, "<p>Cat</p>", "<p>a dog</p>", "--keywords", "cat,dog", "--events", "added", "--min-change", "50%", "--match-case")
	if want := map[string][2]int{}; got.options["match_case=false"] != [2]int{} || got.options["events=added, removed"] != [2]int{} || len(got.options) != len(want) {
		t.Errorf("got %v", got.options)
	}
	got = tryFiles(t, "<p>cat</p>", "<p>a dog</p>", "--keywords", "cat,dog", "--events", "added", "--min-change", "3")
	if want := map[string][2]int{"min_change=none": {1, 0}}; fmt.Sprint(got.options) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got.options, want)
	}
}

func TestTrialMistakes(t *testing.T) {
	a := file(t, "a.html", "<p>a</p>")
	expectExit(t, 2, "name a page and keywords, two files", "test")
	expectExit(t, 2, "there is no keyword in", "test", "--old", a, "--new", a, "--keywords", ",, ,")
	expectExit(t, 2, "there is no keyword in", "test", "--old", a, "--new", a, "--keyword", " ")
	expectExit(t, 2, "name both files", "test", "--old", a, "--keywords", "x")
	expectExit(t, 2, "leave --data and -c out", "test", "--old", a, "--new", a, "--keywords", "x", "--data", "d")
	expectExit(t, 2, "write keywords as --keywords", "test", "https://example.com/", "x", "--data", "d")
	expectExit(t, 1, "does not exist", "test", "--old", a, "--new", a+"x", "--keywords", "x")
	expectExit(t, 2, "no data directory is given", "test", "https://example.com/", "--keywords", "x")
	expectExit(t, 2, "--events", "test", "--old", a, "--new", a, "--keywords", "x", "--events", "changed")
	expectExit(t, 2, "--below: it is a condition on a value; name the value with --offer, --value or --value-pattern", "test", "--old", a, "--new", a, "--below", "3")
	expectExit(t, 0, "No notification: the files have the same words.", "test", "--old", a, "--new", a, "--keywords", "x")
}

// TestTrialOfFilesSaysWhatItIgnores names the flags that need more than two checks of one page.
func TestTrialOfFilesSaysWhatItIgnores(t *testing.T) {
	a, b := file(t, "a.html", "<p>a</p>"), file(t, "b.html", "<p>a cat</p>")
	r := runCLI(t, "test", "--old", a, "--new", b, "--keywords", "cat", "--confirm", "2", "--flip-flop", "2", "--follow-depth", "1")
	if r.code != 0 || !strings.Contains(r.stderr, "ignores --confirm, --flip-flop, --follow-depth\n") || !strings.Contains(r.stdout, "1 notification") {
		t.Errorf("got %+v", r)
	}
	if r := runCLI(t, "test", "--old", a, "--new", b, "--keywords", "cat"); r.code != 0 || r.stderr != "" {
		t.Errorf("got %+v", r)
	}
}

// TestTrialOfHistory tries subscriptions on the versions of a stopped data directory.
func TestTrialOfHistory(t *testing.T) {
	t.Parallel()
	s := newTestSetup(t, "  - {url: \"https://example.com/never\", keywords: [x], sinks: [out], interval: 1000h}\n")
	for n := range 5 {
		s.hook.answers <- 200
		s.page.set(200, fmt.Sprintf("<p>Zeus. %s of stock.</p><p>Lamp %d</p>", []string{"Out", "In"}[n%2], n))
		if r := runCLI(t, "watch", s.page.URL, "zeus", "--client", "legal", "--data", s.data, "--allow", loopback, "--checks", "1", "--every", "0s"); r.code != 0 {
			t.Fatalf("got %+v", r)
		}
	}
	got := parseTrial(t, runCLI(t, "test", s.page.URL, "--keywords", "lamp", "--data", s.data, "--format", "json"))
	if len(got.diffs) != 0 || got.summary["changes"] != 4.0 || got.summary["versions"] != 5.0 {
		t.Errorf("got %+v", got)
	}
	got = parseTrial(t, runCLI(t, "test", "-c", s.config, "--format", "json"))
	if len(got.diffs) != 4 || got.summary["notifications"] != 4.0 || got.summary["not_stored"] != 1.0 || got.options["match_case=true"] != [2]int{0, 4} {
		t.Errorf("got %+v", got)
	}
	expectExit(t, 0, "match_case: true        4 fewer", "test", s.page.URL, "-c", s.config)
	expectExit(t, 1, "has no subscription to https://example.com/other", "test", "https://example.com/other", "-c", s.config)
	expectExit(t, 0, "4 notifications", "test", "-c", s.config, "--client", "legal")
	expectExit(t, 1, `has no subscription to any page for client "nobody"`, "test", "-c", s.config, "--client", "nobody")
	expectExit(t, 0, "4 notifications with 14 differences", "test", s.page.URL, "-c", s.config, "--match-case") // every change but that of a muted number
	expectExit(t, 0, "--restless tell  2 more", "test", s.page.URL, "-c", s.config, "--match-case")
	expectExit(t, 2, "--below: ", "test", s.page.URL, "-c", s.config, "--below", "3")
	expectExit(t, 2, "name a page and keywords", "test", "-c", s.config, "--stem")
	expectExit(t, 0, "2 notifications with 3 differences, of 4 changes between 5 versions of 1 document", "test", s.page.URL, "--keywords", "Lamp 3,4", "--data", s.data)
	expectExit(t, 1, "is not watched", "test", s.page.URL+"/x", "--keywords", "x", "--data", s.data)
	expectExit(t, 1, "it has ", "test", s.page.URL, "--keywords", "x", "--select", "main", "--data", s.data)

	// A new subscription says what it would have told.
	expectExit(t, 0, "it would have told 4 of the 4 changes of the last 30 days", "subscribe", s.page.URL, "out of stock", "--client", "ops", "--sink", "out", "-c", s.config)
	expectExit(t, 0, `"past":{"changes":4,"told":0}`, "subscribe", s.page.URL, "Borealis", "--client", "sea", "--sink", "out", "-c", s.config, "--format", "json")
}
