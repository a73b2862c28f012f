package migrate

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/sources/browser"
)

func readTestdata(t *testing.T, name string) contents {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := readAll(data, "")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// lostLines returns what r lost as lines "ENTRY: KEY".
func lostLines(r contents) []string {
	var all []string
	for _, l := range r.Lost {
		if l.Advice == "" {
			panic("no advice about " + l.Key)
		}
		all = append(all, l.Entry+": "+l.Key)
	}
	return all
}

func compare(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\ngot  %+v\nwant %+v", what, got, want)
	}
}

func TestUrlwatch(t *testing.T) {
	r := readTestdata(t, "urls.yaml")
	css := func(s string) []pipeline.Selector { return []pipeline.Selector{{CSS: s}} }
	var views []pipeline.View
	for _, e := range r.Entries {
		views = append(views, e.Subscription.View)
	}
	compare(t, "views", views, []pipeline.View{
		{Select: []pipeline.Selector{{XPath: `(//div[contains(@class,"release")]//h4)[1]/a`}}},
		{Select: css("table.prices"), Remove: css("tr.ads"), Ignore: []string{"(?m)^.*(?:Updated at).*$", `\d+ visitors online`}},
		{Select: []pipeline.Selector{{JQ: ".items[].title"}}},
		{},
		{Select: css(`[id="content"]`)},
		{Select: css(`[class~="note \"quoted\""] p`)},
		{}, {}, {}, {},
		{Select: css("(((")}, // the caller checks it
		{},
	})
	compare(t, "name", r.Entries[0].Name, "Releases of the tool")
	compare(t, "title", r.Entries[0].Subscription.Title, "Releases of the tool")
	for _, e := range r.Entries {
		compare(t, e.Name+" is paused", e.Subscription.Paused, e.Subscription.URL == "https://example.com/off")
	}
	compare(t, "notes", r.Entries[1].Notes, []string{"user_visible_url: https://example.com/prices?view=all"})
	compare(t, "headers", r.Entries[2].Headers, map[string]string{"Authorization": "Token ${NOT_A_VARIABLE}", "Accept": "application/json"})
	compare(t, "cookies", r.Entries[2].Cookies, map[string]string{"session": "abc: def"})
	compare(t, "events", r.Entries[4].Subscription.Events, []pipeline.Event{pipeline.Added})
	compare(t, "proxy", r.Entries[5].Proxy, "socks5h://proxy.example.com:1080")
	compare(t, "lost", lostLines(r), []string{
		"Price list: filter.keep_lines_containing", "Price list: ignore_cached", "Price list: max_tries", "Price list: timeout",
		"https://example.com/form: data", "https://example.com/form: method", "https://example.com/form: ssl_no_verify",
		"https://example.com/notice: filter.grepi", "https://example.com/notice: filter.shellpipe", "https://example.com/notice: filter.pdf2text",
		"Disk space: command", "An app: wait_until",
		"example.com/without-scheme: url", "a # hash, a 'quote', an umlaut ü and {braces}: [x]: unheard_of",
	})
}

func TestChangedetection(t *testing.T) {
	r := readTestdata(t, "url-watches.json")
	if len(r.Entries) != 4 {
		t.Fatalf("%d entries", len(r.Entries))
	}
	old, item, again := r.Entries[0], r.Entries[1], r.Entries[2]
	compare(t, "oldest first", old.Subscription.URL, "https://example.com/old")
	compare(t, "old view", old.Subscription.View, pipeline.View{
		Select: []pipeline.Selector{{CSS: "main"}}, Remove: []pipeline.Selector{{CSS: "footer"}}, Ignore: []string{"(?m)^.*(?:(?i)cookie banner).*$"},
	})
	compare(t, "default interval", old.Subscription.Interval, pipeline.Every(6*time.Hour))
	compare(t, "item", item.Subscription, pipeline.Subscription{
		URL: "https://example.com/shop/item", Title: "An item", Keywords: []string{"in stock"}, Events: []pipeline.Event{pipeline.Added},
		Interval: pipeline.Every(3*time.Hour + 30*time.Minute), Tags: []string{"Shopping"}, View: pipeline.View{
			Select: []pipeline.Selector{{CSS: ".price"}, {XPath: "//h1"}},
			Remove: []pipeline.Selector{{CSS: "nav"}, {CSS: ".ads"}, {CSS: "footer"}},
			Ignore: []string{"(?m)^.*(?:(?i)Visitors today).*$", `(?m)^.*(?:(?i)\d+ left).*$`, "(?m)^.*(?:(?i)cookie banner).*$"},
		},
	})
	compare(t, "headers", item.Headers, map[string]string{"X-Api-Key": "s3cret"})
	compare(t, "steps", item.Steps, []browser.Step{{Click: "#a"}})
	stock := again.Subscription
	compare(t, "stock of a paused watch", fmt.Sprint(stock.Value.Offer, stock.Becomes, stock.Interval, stock.Paused, stock.Title), "availabilityInStock6h0m0s true")
	compare(t, "price", r.Entries[3].Subscription.Value, &pipeline.Value{Offer: "price"})
	compare(t, "lost", lostLines(r), []string{
		"settings: notification_urls", "https://example.com/old: extract_text", "https://example.com/old: text_should_not_be_present",
		"An item: include_filters", "An item: ignore_text", "An item: trigger_text", "An item: notification_urls",
		"https://example.com/shop/item: method", "https://example.com/shop/item: body",
		"https://example.com/shop/item: include_filters", "https://example.com/shop/item: subtractive_selectors",
		"https://example.com/shop/item: ignore_text", "https://example.com/shop/item: trigger_text",
		"https://example.com/{{ now }}: url",
	})
	for _, l := range r.Lost {
		if strings.Contains(l.Advice, "TOKEN") || strings.Contains(l.Advice, "u:p") {
			t.Errorf("shows a secret: %s", l)
		}
	}
}

// zipOf returns a zip of files, by names and contents in turn.
func zipOf(t *testing.T, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		w, err := z.Create(files[i])
		if err == nil {
			_, err = w.Write([]byte(files[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestBackupsOfOldAndNewVersions(t *testing.T) {
	watch := `{"url":"https://example.com/a","include_filters":["main"]}`
	for name, data := range map[string][]byte{
		"one file":              zipOf(t, "url-watches.json", `{"watching":{"1":`+watch+`}}`, "1/text.txt", "old text", "url-list.txt", "https://example.com/a"),
		"in a folder":           zipOf(t, "datastore/url-watches.json", `{"watching":{"1":`+watch+`}}`),
		"a file for each watch": zipOf(t, "changedetection.json", `{"settings":{}}`, "1/watch.json", watch),
	} {
		r, err := readAll(data, "")
		if err != nil || len(r.Entries) != 1 || r.Entries[0].Subscription.Select[0].CSS != "main" {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// TestBackupInParts reads a backup whose watches, tags and settings of stock have a file each.
func TestBackupInParts(t *testing.T) {
	r, err := readAll(zipOf(t,
		"changedetection.json", `{"settings":{"requests":{"time_between_check":{"hours":3}}}}`,
		"t1/tag.json", `{"uuid":"t1","title":"Two words"}`,
		"1/watch.json", `{"url":"https://example.com/lamp","title":"The lamp","date_created":1,"tags":["t1"],"processor":"restock_diff","paused":true}`,
		"1/restock_diff.json", `{"restock_diff":{"in_stock_processing":"all_changes","price_change_min":20,"price_change_max":"100.50"}}`,
		"2/watch.json", `{"url":"https://example.com/terms","title":" Terms\nof use ","date_created":2,"trigger_text":["/Sold Out/"],"browser_steps":[
			{"operation":"Click element","selector":"#ok"},{"operation":"Click element","selector":"//button"},{"operation":"Wait for seconds","optional_value":"5"},{"operation":"Enter text in field","selector":"#q","optional_value":"lamp"}]}`,
	), "")
	if err != nil || len(r.Entries) != 3 {
		t.Fatalf("%+v, %v", r, err)
	}
	stock, price, terms := r.Entries[0].Subscription, r.Entries[1].Subscription, r.Entries[2]
	for _, s := range []pipeline.Subscription{stock, price} {
		compare(t, "of the watch", fmt.Sprint(s.Title, s.Tags, s.Paused, s.Interval), "The lamp[Two-words] true 3h0m0s")
	}
	compare(t, "stock", fmt.Sprint(stock.Value.Offer, stock.Condition), "availability"+fmt.Sprint(pipeline.Condition{}))
	compare(t, "price", fmt.Sprint(price.Value.Offer, price.Condition), "price"+fmt.Sprint(pipeline.Condition{Below: "20", Above: "100.50"}))
	compare(t, "title on one line", terms.Subscription.Title, "Terms of use")
	compare(t, "trigger with case", fmt.Sprint(terms.Subscription.Keywords, terms.Subscription.MatchCase), "[Sold Out] true")
	compare(t, "steps", fmt.Sprint(len(terms.Steps), terms.Steps[0].Click, terms.Steps[1].Fill.Select, terms.Steps[1].Fill.Value.Reveal()), "2#ok#qlamp")
	compare(t, "a step by XPath, and a wait", lostLines(r), []string{"Terms\nof use: browser_steps", "Terms\nof use: browser_steps"})
}

func TestOPML(t *testing.T) {
	r := readTestdata(t, "feeds.opml")
	var got []string
	for _, e := range r.Entries {
		got = append(got, fmt.Sprint(e.Name, " ", e.Subscription.URL, " ", e.Subscription.Items, " ", e.Notes))
	}
	compare(t, "entries", got, []string{
		"World & more https://example.com/world.rss true [folder: News]", "Town https://example.com/town.atom true [folder: News/Local]",
		"A page https://example.com/page false []",
		"Home https://example.com/home false []", "Old scheme https://example.com/old.rss true []", "Two schemes http://example.com/two.rss true []",
	})
	compare(t, "title", r.Entries[0].Subscription.Title, "World & more")
	compare(t, "lost", lostLines(r), []string{"Broken: "})
}

func TestList(t *testing.T) {
	r := readTestdata(t, "urls.txt")
	var got []string
	for _, e := range r.Entries {
		got = append(got, fmt.Sprint(e.Name, " ", e.Subscription.URL, " ", e.Subscription.Tags))
	}
	compare(t, "entries", got, []string{"line 2 https://example.com/a []", "line 3 https://example.com/b [news prices]", "line 6 https://example.com/a []"})
	compare(t, "lost", lostLines(r), []string{"line 5: "})
}

// TestHostileFiles holds that files that would take much memory or time are refused.
func TestHostileFiles(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'j'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 10), ","))
	}
	for name, tt := range map[string]struct {
		data   []byte
		format string
		want   string
	}{
		"aliases":            {[]byte(bomb + "url: https://example.com/\n"), FormatUrlwatch, "excessive aliasing"},
		"many aliases":       {[]byte("url: &a x\nb: [" + strings.Repeat("*a,", maxAliases+1) + "]\n"), FormatUrlwatch, "more than 10000 aliases"},
		"an alias to itself": {[]byte("url: &a [*a]\n"), FormatUrlwatch, "contains itself"},
		"brackets":           {[]byte("url: " + strings.Repeat("[", 1_000_000)), FormatUrlwatch, "not YAML"},
		"not YAML":           {[]byte("url: [\n"), FormatUrlwatch, "not YAML"},
		"zip bomb":           {zipOf(t, "url-watches.json", strings.Repeat(" ", maxTextBytes+1)), "", "have more than 16 MiB"},
		"zip bomb in parts":  {zipOf(t, "1/watch.json", "{}"+strings.Repeat(" ", maxTextBytes/2), "2/watch.json", "{}"+strings.Repeat(" ", maxTextBytes/2)), "", "have more than 16 MiB"},
		"half a zip":         {zipOf(t, "url-watches.json", "{}")[:40], "", "no zip"},
		"another zip":        {zipOf(t, "a.txt", "x"), "", `no "watching"`},
		"another JSON":       {[]byte(`{"a":1}`), "", `no "watching"`},
		"not JSON":           {[]byte(`{"watching":`), "", "not url-watches.json"},
		"deep JSON":          {[]byte(`{"watching":` + strings.Repeat("[", 100_000)), "", "not url-watches.json"},
		"deep outlines":      {[]byte("<opml>" + strings.Repeat("<outline>", maxOutlineDepth+1)), "", "levels deep"},
		"another XML":        {[]byte("<rss></rss>"), "", "not OPML"},
		"large":              {bytes.Repeat([]byte("x"), maxTextBytes+1), "", "larger than 16 MiB"},
		"not UTF-8":          {[]byte("https://example.com/\xff"), "", "not UTF-8"},
		"many entries":       {bytes.Repeat([]byte("http://a/\n"), maxEntries+1), "", "more than 100000 entries"},
		"a format":           {[]byte("x"), "feed", `"feed" is no format`},
	} {
		if _, err := readAll(tt.data, tt.format); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}

// FuzzRead holds that no file makes Read panic.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"urls.yaml", "url-watches.json", "feeds.opml", "urls.txt"} {
		data, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := readAll(data, "")
		if err == nil && r.Result == nil {
			t.Error("neither a result nor an error")
		}
	})
}

// contents are the contents of a file with its entries.
type contents struct {
	*Result
	Entries []Entry
}

func readAll(data []byte, format string) (c contents, err error) {
	c.Result, err = Read(data, format, func(e Entry) { c.Entries = append(c.Entries, e) })
	return c, err
}
