package recorded

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"html"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/klauspost/compress/zstd"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

var tableFile = flag.String("recorded.table", "", "replay every fetch of every page, and write the table of docs/internals/recorded-pages.md to this file; - is the standard output")

// tableRow is the row of one page.
type tableRow struct {
	fetches, byteChanges, textChanges, partChanges int
	// recorded are the versions that the curators' tool recorded after the first; texts are those of
	// them whose words differ, found those of texts that the pipeline reported.
	recorded, textRecords, found int
	// notObservable are those of texts that no difference between two fetches can show: no fetch lies
	// between the two records, the part reads the same at both, or the curators chose another part in
	// between.
	notObservable int
	reported      int // changes of the pipeline
	notRecorded   int // of those, the ones that were not recorded
	failed        int
}

// TestTable replays every fetch of each page, watches the part that the curators chose, and holds
// the changes that the pipeline reports against the versions that the curators' tool recorded. It
// fails if a recorded change of the text is not reported, or if a reported change is not a difference
// between the words of the two texts.
func TestTable(t *testing.T) {
	dir := corpusDir(t)
	if *tableFile == "" {
		t.Skip("-recorded.table is not set: it replays every fetch of every page, which takes minutes")
	}
	all := declarationHistories(t, dir)
	var b strings.Builder
	b.WriteString("| page | fetches | byte changes | text changes | changes in the chosen part | recorded versions | of them with other words | found | not a change of the page | changes reported | not recorded | failed checks |\n")
	b.WriteString("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	var sum tableRow
	for _, name := range pageNames(t, dir) {
		if !strings.Contains(name, *onlyNames) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			r := measurePage(t, dir, name, all[name])
			r.write(&b, "`"+name+"`")
			sum.add(r)
			t.Logf("%+v", r)
		})
	}
	sum.write(&b, "all")
	if *tableFile == "-" {
		fmt.Print(b.String())
	} else if err := os.WriteFile(*tableFile, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (r tableRow) write(w io.Writer, name string) {
	fmt.Fprintf(w, "| %s | %d | %d | %d | %d | %d | %d | %d | %d | %d | %d | %d |\n",
		name, r.fetches, r.byteChanges, r.textChanges, r.partChanges, r.recorded, r.textRecords, r.found, r.notObservable,
		r.reported, r.notRecorded, r.failed)
}

func (r *tableRow) add(o tableRow) {
	r.fetches, r.byteChanges = r.fetches+o.fetches, r.byteChanges+o.byteChanges
	r.textChanges, r.partChanges = r.textChanges+o.textChanges, r.partChanges+o.partChanges
	r.recorded, r.textRecords = r.recorded+o.recorded, r.textRecords+o.textRecords
	r.found, r.notObservable = r.found+o.found, r.notObservable+o.notObservable
	r.reported, r.notRecorded, r.failed = r.reported+o.reported, r.notRecorded+o.notRecorded, r.failed+o.failed
}

// measurePage replays a page. Where its curators chose another part, the page continues as another
// document, as it does for a user who changes select.
func measurePage(t *testing.T, dir, name string, chosen []declaration) tableRow {
	fetches := readArchive(t, filepath.Join(dir, name+".tar.zst"))
	records := readArchive(t, filepath.Join(strings.TrimSuffix(dir, "/")+"-versions", name+".tar.zst"))
	r := tableRow{fetches: len(fetches), recorded: len(records) - 1}
	for i, whole := 0, ""; i < len(fetches); i++ {
		if i > 0 && !bytes.Equal(fetches[i].body, fetches[i-1].body) {
			r.byteChanges++
		}
		x, _ := extract(fetches[i].body, declaration{})
		if text := x.visibleText(); text != "" && text != whole {
			if whole != "" {
				r.textChanges++
			}
			whole = text
		}
	}
	var changes []int                       // the fetches at which the pipeline reported a change
	parts := make([][]string, len(fetches)) // the words of the chosen part, nil where it is not there
	period := make([]int, len(fetches))     // which of chosen was in force
	for k, d := range chosen {
		from, to := 0, len(fetches)
		if k > 0 {
			from = fetchAt(fetches, chosen[k-1].until.Unix()) + 1
		}
		if !d.until.IsZero() {
			to = fetchAt(fetches, d.until.Unix()) + 1
		}
		for i := from; i < to; i++ {
			period[i] = k
		}
		for _, i := range r.replay(t, name, d, fetches[from:to], parts[from:to]) {
			changes = append(changes, from+i)
		}
	}
	recorded := map[int]bool{} // the changes that a record tells of
	for k := 1; k < len(records); k++ {
		if slices.Equal(wordsOf(markdownText(records[k].body)), wordsOf(markdownText(records[k-1].body))) {
			continue
		}
		r.textRecords++
		from, to := fetchAt(fetches, records[k-1].time), fetchAt(fetches, records[k].time)
		found := false
		for _, i := range changes {
			if i > from && i <= to {
				recorded[i], found = true, true
			}
		}
		switch {
		case found:
			r.found++
		case from < 0 || period[from] != period[to] || slices.Equal(parts[from], parts[to]):
			r.notObservable++
		default:
			t.Errorf("the recorded change of %s is not reported", time.Unix(records[k].time, 0).UTC())
		}
	}
	r.reported, r.notRecorded = len(changes), len(changes)-len(recorded)
	return r
}

// replay runs the pipeline over fetches and returns those at which it reported a change, counted
// from 0. It fails the test where the words of the part do not differ there. It sets parts.
func (r *tableRow) replay(t *testing.T, name string, d declaration, fetches []archiveEntry, parts [][]string) []int {
	rec := recording{name: name}
	part, failed := "", 0
	differ := map[int]bool{} // the fetches whose words differ from those before
	var last []string
	for i, f := range fetches {
		rec.bodies = append(rec.bodies, f.body)
		x, ok := extract(f.body, d)
		if !ok || x.visibleText() == "" {
			failed++
			continue
		}
		text := x.visibleText()
		parts[i] = wordsOf(text)
		if part != "" && text != part {
			r.partChanges++
			differ[i] = !slices.Equal(parts[i], last)
		}
		part, last = text, parts[i]
	}
	if len(fetches) == 0 {
		return nil
	}
	changes, got := reportedChanges(t, rec, d)
	if got != failed {
		t.Errorf("%d failed checks, want %d: those where the chosen part is not there", got, failed)
	}
	r.failed += failed
	for _, i := range changes {
		if !differ[i] {
			t.Errorf("a change is reported at %s, and no word differs", time.Unix(fetches[i].time, 0).UTC())
		}
	}
	return changes
}

// reportedChanges runs the pipeline over r and returns the fetches, counted from 0, at which it
// reported a change, and how many checks failed.
func reportedChanges(t *testing.T, r recording, d declaration) (at []int, failed int) {
	url, _ := serveRecordings(t, []recording{r})
	var zero time.Duration
	router, err := vokter.New(vokter.Config{
		Sinks: map[string]pipeline.Sink{"drop": pipeline.SinkFunc(func(context.Context, pipeline.Notification) error { return nil })},
		Subscriptions: []pipeline.Subscription{{
			URL: url + "/" + r.name, Keywords: keywords, Sinks: []string{"drop"}, View: d.view(),
		}},
		Fetch:  vokter.FetchConfig{Concurrency: 8, Rate: 100000, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}},
		Expire: vokter.ExpireConfig{After: -1},
		Checks: len(r.bodies), Every: &zero,
	})
	if err != nil {
		t.Fatal(err)
	}
	router.Handle("changes-seen", flow.TopicChanges, flow.ProcessorFunc(func(_ context.Context, tx flow.Tx, m flow.Message) error {
		if m.Type != flow.TypeChange {
			return nil
		}
		c, err := flow.ChangeFrom(m)
		if err != nil {
			return err
		}
		tx.OnCommit(func() { at = append(at, int(c.Check)-1) })
		return nil
	}))
	if err := router.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	return at, router.Summary().Failed
}

// archiveEntry is a file of an archive, named by the seconds since 1970 at which it was made.
type archiveEntry struct {
	time int64
	body []byte
}

func readArchive(t *testing.T, path string) (entries []archiveEntry) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f, zstd.WithDecoderMaxWindow(1<<27))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for tr := tar.NewReader(z); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return entries
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		seconds, err := strconv.ParseInt(strings.TrimSuffix(h.Name, filepath.Ext(h.Name)), 10, 64)
		if err != nil {
			t.Fatalf("%s: %s is not named by a time", path, h.Name)
		}
		body, err := io.ReadAll(tr)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		entries = append(entries, archiveEntry{seconds, body})
	}
}

// fetchAt returns the last fetch at time or before it, -1 if there is none.
func fetchAt(entries []archiveEntry, time int64) int {
	n, _ := slices.BinarySearchFunc(entries, time+1, func(e archiveEntry, t int64) int {
		return int(max(-1, min(1, e.time-t)))
	})
	return n - 1
}

var (
	mdLink   = regexp.MustCompile(`!?\[((?:[^\[\]\\]|\\.)*)\]\((?:[^()\\]|\\.|\([^()]*\))*\)`)
	mdMarks  = regexp.MustCompile("(?m)^ *(#+|[-*+>]|\\d+\\.) +|[*_`|]+|\\\\")
	autoLink = regexp.MustCompile(`<(https?://[^>]*|mailto:[^>]*)>`)
)

// markdownText is the text of Markdown, without the targets of links.
func markdownText(md []byte) string {
	s := autoLink.ReplaceAllString(string(md), "$1")
	for {
		next := mdLink.ReplaceAllString(s, "$1")
		if next == s {
			break
		}
		s = next
	}
	return html.UnescapeString(mdMarks.ReplaceAllString(s, ""))
}

// wordsOf returns the runs of letters and digits of s, in lower case.
func wordsOf(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
}
