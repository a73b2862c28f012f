package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline/flow"
)

func TestHistoryText(t *testing.T) {
	ago := func(d time.Duration) time.Time { return noon.Add(-d) }
	told := func(client, delivery string) inspect.Match {
		return inspect.Match{Client: client, Sink: "ops", Keywords: []string{"k"}, Delivery: delivery}
	}
	got := printedText(t, func(r *results) {
		r.printHistory(inspect.History{URL: "https://example.com/terms\x1b[2J", Versions: []inspect.Version{
			{N: 12, Check: 40, Time: ago(time.Minute), Size: &flow.Size{Removed: 1, Added: 2, Moved: 3, Old: 100, New: 101},
				Matches: []inspect.Match{told("legal", inspect.DeliveryDelivered), told("shop", inspect.DeliveryPending), told("a", inspect.DeliveryDelivered), told("b", inspect.DeliveryDelivered)}, Omitted: 3},
			{N: 11, Time: ago(time.Hour), Size: &flow.Size{Added: 1, Old: 0, New: 1}},
			{N: 10, Check: 20, Time: ago(48 * time.Hour), Size: &flow.Size{Old: 9, New: 9}},
			{N: 9, Check: 9, Time: ago(400 * 24 * time.Hour), Forgotten: true},
			{N: 8, Check: 1, Time: ago(401 * 24 * time.Hour), Baseline: true},
		}})
		r.printHistory(inspect.History{URL: "https://example.com/new"})
	})
	want := `https://example.com/terms[2J
  version 12  11:59:00           check 40  -1 +2 ~3 of 101 words  notified legal (ops), shop (ops, pending), a (ops), 4 more
  version 11  11:00:00           a push    +1 of 1 word           nobody notified
  version 10  27 Feb 12:00       check 20  no word changed        nobody notified
  version 9   25 Jan 2025 12:00  check 9   not compared           too long ago to know who was notified
  version 8   24 Jan 2025 12:00  check 1   baseline
https://example.com/new
  no version is stored yet
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestVersionRange(t *testing.T) {
	for want, versions := range map[string][]uint64{
		"version 7": {7}, "versions 2-5, 7": {7, 5, 4, 3, 2}, "versions 1, 3": {3, 1}, "versions 9-10": {10, 9},
	} {
		if got := versionRange(versions); got != want {
			t.Errorf("%v: got %q, want %q", versions, got, want)
		}
	}
}

// TestHistoryVerbs reads ten versions from a stopped data directory.
func TestHistoryVerbs(t *testing.T) {
	t.Parallel()
	s := newTestSetup(t, "")
	for n := range 10 {
		s.hook.answers <- 200
		s.check(t, fmt.Sprintf("<title>Shop</title><p>Zeus. %s of stock.</p><p>Price: %d drachmae\x1b[2J</p><p>Hera</p><p>Impressum</p><p>Imprint</p>", []string{"Out", "In"}[n%2], 10+n))
	}
	found := objects(t, runCLI(t, "history", s.page.URL, "-c", s.config, "--format", "json"))
	if len(found["version"]) != 10 || found["version"][0]["version"] != 10.0 || found["version"][0]["size"].(map[string]any)["added"] != 2.0 ||
		len(found["version"][0]["matches"].([]any)) != 1 || found["version"][9]["baseline"] != true {
		t.Errorf("history: got %v", found)
	}
	if r := runCLI(t, "show", s.page.URL, "--version", "3", "-c", s.config); r.stdout != "Shop\nZeus. Out of stock.\nPrice: 12 drachmae[2J\nHera\nImpressum\nImprint\n" {
		t.Errorf("show: got %+v", r)
	}
	text := objects(t, runCLI(t, "show", s.page.URL, "-c", s.config, "--format", "json"))["text"]
	if len(text) != 1 || text[0]["version"] != 10.0 || !strings.Contains(text[0]["text"].(string), "Price: 19 drachmae") {
		t.Errorf("show: got %v", text)
	}
	r := runCLI(t, "diff", s.page.URL, "--from", "3", "-c", s.config, "--context", "1")
	if _, got, _ := strings.Cut(r.stdout, "\n\n"); got != `  Shop
- Zeus. [-Out-] of stock.
+ Zeus. {+In+} of stock.
- Price: [-12-] drachmae[2J
+ Price: {+19+} drachmae[2J
  Hera
  ··· 2 unchanged blocks
` {
		t.Errorf("diff: got %+v", r)
	}
	if r := runCLI(t, "diff", s.page.URL, "-y", "--width", "50", "-c", s.config); !strings.Contains(r.stdout, "\n- Price: [-18-]         │ + Price: {+19+}\n") {
		t.Errorf("diff side by side: got %+v", r)
	}
	found = objects(t, runCLI(t, "grep", s.page.URL, "in STOCK of", "--match", "terms", "--version", "10", "-c", s.config, "--format", "json"))
	if len(found["occurrence"]) != 3 {
		t.Errorf("grep of terms: got %v", found)
	}
	if r := runCLI(t, "grep", s.page.URL, "Out of stock", "-c", s.config, "--color", "always"); r.stdout !=
		"versions 1, 3, 5, 7, 9: word 3, bytes 11-23 of version 9\n  Zeus. \x1b[1;31mOut of stock\x1b[0m.\n" {
		t.Errorf("grep: got %+v", r)
	}
	if d := objects(t, runCLI(t, "diff", s.page.URL, "-c", s.config, "--format", "json"))["difference"]; len(d) != 1 || d[0]["from"].(map[string]any)["version"] != 9.0 {
		t.Errorf("diff: got %v", d)
	}
	expectExit(t, 0, "version 10  ", "history", s.page.URL, "-c", s.config)
	expectExit(t, 0, "notified legal (hook)", "history", s.page.URL, "-c", s.config)
	expectExit(t, 2, "versions are numbered from 1", "show", s.page.URL, "--version", "0", "-c", s.config)
	expectExit(t, 1, `"zeus" is not in the one version`, "grep", s.page.URL, "zeus", "--match-case", "--version", "3", "-c", s.config)
	expectExit(t, 2, "--csv: it is a format of its own", "history", s.page.URL, "--csv", "--format", "json", "-c", s.config)
	expectExit(t, 2, `--version: "abc" is not the number of a version, such as 3; history lists those that are stored`, "show", s.page.URL, "--version", "abc", "-c", s.config)
	expectExit(t, 1, "has no version 11; 10 versions from 1 to 10 are kept", "show", s.page.URL, "--version", "11", "-c", s.config)
	expectExit(t, 1, "no version before version 1", "diff", s.page.URL, "--to", "1", "-c", s.config)
	expectExit(t, 1, "is not watched", "history", s.page.URL+"/other", "-c", s.config)
	expectExit(t, 1, `no document that is watched by the client "x"`, "history", s.page.URL, "--client", "x", "-c", s.config)
	expectExit(t, 2, "--context: must be at least 0", "diff", s.page.URL, "--context", "-1", "-c", s.config)
	expectExit(t, 2, "neither always nor never", "grep", s.page.URL, "Hera", "--color", "red", "-c", s.config)
	expectExit(t, 2, "name a page and a word", "grep", s.page.URL, "-c", s.config)
	expectExit(t, 1, `"!" has no word in it`, "grep", s.page.URL, "!", "-c", s.config)
	expectExit(t, 1, `"zeus" is in none of the 10 versions that were searched; --stem, or no --match-case, finds more`, "grep", s.page.URL, "zeus", "--match-case", "-c", s.config)
}
