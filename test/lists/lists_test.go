package lists

import (
	"fmt"
	"html"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/vokter/vokter/internal/reading"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/pipeline/text/stemmers"
	"github.com/vokter/vokter/stages/match"
)

// item is an item of a list: the texts of its parts, of which the first links to its address, if there is one.
type item struct {
	address string
	parts   []string
}

// items returns items of lines "address: part | part".
func items(lines ...string) []item {
	var all []item
	for _, l := range lines {
		address, rest, _ := strings.Cut(l, ": ")
		all = append(all, item{address, strings.Split(rest, " | ")})
	}
	return all
}

// templates write a list as a page.
var templates = map[string]struct{ list, item, part string }{
	"cards":      {"<div>%s</div>", `<div class="card">%s</div>`, "<p>%s</p>"},
	"list":       {"<ul>%s</ul>", "<li>%s</li>", "<span>%s</span> "},
	"table":      {"<table>%s</table>", "<tr>%s</tr>", "<td>%s</td>"},
	"paragraphs": {"%s", "%s", "<p>%s</p>"},
	"lines":      {"%s", "<p>%s</p>", "%s, "},
	"divs":       {"<div>%s</div>", "<div>%s</div>", "%s, "},
	"breaks":     {"<p>%s</p>", "%s<br>", "%s, "},
}

func page(template string, all []item, links bool) []byte {
	t := templates[template]
	var rows strings.Builder
	for _, i := range all {
		var row strings.Builder
		for k, p := range i.parts {
			p = html.EscapeString(p)
			if k == 0 && links {
				p = fmt.Sprintf(`<a href="%s">%s</a>`, i.address, p)
			}
			fmt.Fprintf(&row, t.part, p)
		}
		fmt.Fprintf(&rows, t.item, row.String())
	}
	return []byte(`<!doctype html><title>List</title><h1>Entries</h1>` + fmt.Sprintf(t.list, rows.String()) + `<footer>The end</footer>`)
}

// changeOf returns the change between two bodies.
func changeOf(t *testing.T, contentType string, old, new []byte) flow.Change {
	t.Helper()
	file := func(body []byte) reading.File {
		return reading.File{Name: "page", ContentType: contentType, Body: body}
	}
	c, _, err := reading.Compare(t.Context(), "https://example.com/", file(old), file(new), pipeline.View{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// told returns what a change says to somebody with these keywords: "+keyword" and "-keyword", sorted.
func told(c *flow.Change, keywords ...string) []string {
	sub := pipeline.Subscription{Keywords: keywords}.WithDefaults()
	said := []string{}
	for _, m := range match.NewMatcher([]match.Entry{{ID: "s", Subscription: sub}}, text.NewLanguages(stemmers.All()...)).Match(c) {
		for _, d := range m.Diffs {
			sign := "+"
			if d.Event == pipeline.Removed {
				sign = "-"
			}
			said = append(said, sign+d.Keyword)
		}
	}
	slices.Sort(said)
	return slices.Compact(said)
}

// became returns what became of the items of a change, in order.
func became(c *flow.Change) []string {
	all := []string{}
	for _, g := range c.Groups {
		if g.Item != "" {
			all = append(all, g.Item+" "+g.Title)
		}
	}
	return all
}

var jobs = items("/1: Platform Engineer, payments | Bergen | Full time", "/2: Data Analyst, retail | Oslo | Part time",
	"/3: Go Developer, fintech | Oslo | Full time")

// numbered returns n items with other words each.
func numbered(from, n int) []item {
	var all []item
	for i := from; i < from+n; i++ {
		all = append(all, item{fmt.Sprintf("/n/%d", i), []string{fmt.Sprintf("subject%d verb%d object%d", i, i, i), "Full time", "Oslo"}})
	}
	return all
}

// renamed returns all with other addresses.
func renamed(all []item, suffix string) []item {
	all = slices.Clone(all)
	for i := range all {
		all[i].address += suffix
	}
	return all
}

func reversed(all []item) []item {
	all = slices.Clone(all)
	slices.Reverse(all)
	return all
}

// TestLists: an item that came or went is news, whatever else did; one that moved says nothing; one that was edited
// reports its edit.
func TestLists(t *testing.T) {
	prices := items("/a: Lamp | 10 EUR | in stock", "/b: Chair | 20 EUR | in stock", "/c: Table | 30 EUR | in stock")
	ranks := items("/a: 1 | Alpha Centauri | 900 points", "/b: 2 | Beta Pictoris | 800 points", "/c: 3 | Gamma Draconis | 700 points")
	thread := items("/a: Ann | the first answer to it all | 2 minutes ago", "/b: Bob | nobody has ever seen that | 5 minutes ago",
		"/c: Cid | look at the manual | 9 minutes ago")
	for _, tt := range []struct {
		name      string
		old, new  []item
		keywords  []string
		want      []string
		linksOnly bool // without links nobody can know
	}{
		{"one comes as one like it goes",
			append(items("/0: Cook, hotel | Moss | Part time"), jobs...),
			append(items("/9: Senior Go Developer | Oslo | Full time", "/0: Cook, hotel | Moss | Part time"), jobs[:2]...),
			[]string{"go developer", "fintech", "cook"}, []string{"+go developer", "-fintech", "-go developer"}, false},
		{"all are new", numbered(0, 6), numbered(10, 6), []string{"full time", "object0", "object12"},
			[]string{"+full time", "+object12", "-full time", "-object0"}, false},
		{"it rolled by one", numbered(1, 6), numbered(0, 6), []string{"full time", "object0", "object3", "object6"},
			[]string{"+full time", "+object0", "-full time", "-object6"}, false},
		{"sorted by another column", numbered(0, 6), reversed(numbered(0, 6)), []string{"full time", "object0", "oslo"}, []string{}, false},
		{"a price changed", prices, items("/a: Lamp | 10 EUR | in stock", "/b: Chair | 15 EUR | in stock", "/c: Table | 30 EUR | in stock"),
			[]string{"chair", "15", "20", "in stock"}, []string{"+15", "-20"}, false},
		{"sold out", prices, items("/a: Lamp | 10 EUR | in stock", "/b: Chair | 20 EUR | sold out", "/c: Table | 30 EUR | in stock"),
			[]string{"chair", "sold out"}, []string{"+sold out"}, true},
		{"a ranking", ranks, items("/b: 1 | Beta Pictoris | 950 points", "/a: 2 | Alpha Centauri | 940 points", "/c: 3 | Gamma Draconis | 710 points"),
			[]string{"alpha centauri", "beta pictoris", "gamma draconis"}, []string{}, true},
		{"a thread grows older", thread, items("/a: Ann | the first answer to it all | 12 minutes ago", "/b: Bob | nobody has ever seen that | 15 minutes ago",
			"/c: Cid | look at the manual | 19 minutes ago"), []string{"ann", "manual", "nobody"}, []string{}, false},
		{"addresses that change at each fetch", renamed(prices, "/s/1"), renamed(items("/a: Lamp | 10 EUR | in stock", "/b: Chair | 15 EUR | in stock",
			"/c: Table | 30 EUR | in stock"), "/s/2"), []string{"chair", "15"}, []string{"+15"}, false},
		{"session ids", renamed(prices, "?sid=1&utm_source=x"), renamed(items("/a: Lamp | 10 EUR | in stock", "/b: Chair | 15 EUR | in stock",
			"/c: Table | 30 EUR | in stock"), "?sid=2"), []string{"chair", "15"}, []string{"+15"}, false},
	} {
		for name := range templates {
			for _, links := range []bool{true, false} {
				if tt.linksOnly && !links {
					continue
				}
				c := changeOf(t, "text/html", page(name, tt.old, links), page(name, tt.new, links))
				if got := told(&c, tt.keywords...); !slices.Equal(got, tt.want) {
					t.Errorf("%s, as %s, links %v: told %q, want %q", tt.name, name, links, got, tt.want)
				}
			}
		}
	}
}

// TestScores: entries that share all of their words with others are known by them together, however their numbers
// change and order them.
func TestScores(t *testing.T) {
	vocabulary := strings.Fields("amber basalt cedar delta ember fjord granite harbor indigo jasmine kelp lagoon maple")
	team := func(i int) string {
		n := len(vocabulary)
		return fmt.Sprintf("%s %s %s", vocabulary[i%n], vocabulary[(i+1+i/n)%n], vocabulary[(i+3+2*(i/n))%n])
	}
	board := func(from, to int, points func(i int) int) (all []item) {
		for i := from; i < to; i++ {
			all = append(all, item{fmt.Sprint("/", i), []string{fmt.Sprintf("%s (%d points)", team(i), points(i))}})
		}
		slices.SortStableFunc(all, func(a, b item) int {
			return strings.Compare(a.parts[0][len(a.parts[0])-12:], b.parts[0][len(b.parts[0])-12:])
		})
		return all
	}
	old, new := board(0, 60, func(i int) int { return 1000 + 7*i }), board(0, 60, func(i int) int { return 9000 - 11*i })
	came := append(slices.Clone(new), item{"/60", []string{"quartz lagoon amber (12 points)"}})
	slots := func(a, b string) []item {
		return items("/1: 10:00 to 11:30 Ann "+a, "/2: 11:00 to 12:30 Ann "+b, "/3: 12:00 to 13:30 Bob free", "/4: 13:00 to 14:30 Bob taken",
			"/5: 14:00 to 15:30 Cid free", "/6: 15:00 to 16:30 Cid taken")
	}
	for _, tt := range []struct {
		name     string
		old, new []item
		keywords []string
		want     []string
	}{
		{"all scores", old, new, append(vocabulary, "points"), []string{}},
		{"all scores, and one came", old, came, []string{"quartz", "lagoon", "cedar"}, []string{"+lagoon", "+quartz"}},
		{"two prices change places", items("/1: red oak lamp 12 EUR", "/2: red ash lamp 7 EUR", "/3: blue oak lamp 30 EUR", "/4: blue ash lamp 5 EUR"),
			items("/1: red oak lamp 7 EUR", "/2: red ash lamp 12 EUR", "/3: blue oak lamp 30 EUR", "/4: blue ash lamp 5 EUR"), []string{"oak", "ash"}, []string{}},
		{"another hour is free", slots("free", "taken"), slots("taken", "free"), []string{"free"}, []string{"+free", "-free"}},
	} {
		for name := range templates {
			c := changeOf(t, "text/html", page(name, tt.old, false), page(name, tt.new, false))
			if got := told(&c, tt.keywords...); !slices.Equal(got, tt.want) {
				t.Errorf("%s, as %s: told %q, want %q", tt.name, name, got, tt.want)
			}
		}
	}
}

// TestItems: groups say what became of an item.
func TestItems(t *testing.T) {
	release := func(v string) []byte {
		return []byte(`<p>News</p><ul class="latest"><li><a href="/releases/` + v + `">Release ` + v + ` is out now for everybody</a></li></ul>`)
	}
	nested := func(fruit, vegetables string) []byte {
		return []byte(`<ul><li>Food<ol><li>Fruit<ul>` + fruit + `</ul></li><li>Vegetables<ul>` + vegetables + `</ul> of the field</li></ol></li></ul>`)
	}
	li, linkedLi := "<li>%s from the hill</li>", `<li><a href="/%[1]s">%[1]s from the hill</a></li>`
	leaves := func(item string, names ...string) (s string) {
		for _, n := range names {
			s += fmt.Sprintf(item, n)
		}
		return s
	}
	numberedClasses := func(from int) []byte {
		var b strings.Builder
		for _, i := range numbered(from, 4) {
			fmt.Fprintf(&b, `<div class="post-%s post"><h2><a href="%s">%s</a></h2><p>%s</p></div>`, i.address[3:], i.address, i.parts[0], i.parts[1])
		}
		return []byte(b.String())
	}
	// headed writes entries "address: title | text" as headings with links, each before a line without a class and a
	// text, which only some have.
	headed := func(entries ...string) []byte {
		var b strings.Builder
		for _, i := range items(entries...) {
			fmt.Fprintf(&b, `<h3><a href="%s">%s</a></h3><div>by Ann</div>`, i.address, i.parts[0])
			for _, p := range i.parts[1:] {
				fmt.Fprintf(&b, "<p>%s</p>", p)
			}
		}
		return []byte(`<h1>Posts</h1>` + b.String() + `<div><a href="/2">Older posts</a></div>`)
	}
	linked := func(element string, titles ...string) []byte {
		var b strings.Builder
		for _, t := range titles {
			fmt.Fprintf(&b, `<%s><a href="/%s">%s</a>, Oslo, Full time</%s>`, element, url.PathEscape(t), t, element)
		}
		return []byte(`<h1>Jobs</h1>` + b.String())
	}
	bare := func(entries ...string) []byte {
		var b strings.Builder
		for _, i := range items(entries...) {
			fmt.Fprintf(&b, `<div><div><a href="/%s">%s</a></div><div>%s</div><div>Full time</div></div>`, i.address, i.parts[0], i.parts[1])
		}
		return []byte(`<h1>Jobs</h1><div>` + b.String() + `</div>`)
	}
	calendar := func(entries ...string) []byte {
		var b strings.Builder
		for _, i := range items(entries...) {
			fmt.Fprintf(&b, "BEGIN:VEVENT\nUID:%s\nSUMMARY:%s\nDTSTART:%s\nEND:VEVENT\n", i.address, i.parts[0], i.parts[1])
		}
		return []byte("BEGIN:VCALENDAR\n" + b.String() + "END:VCALENDAR\n")
	}
	feed := func(entries ...string) []byte {
		var b strings.Builder
		for _, e := range entries {
			id, title, _ := strings.Cut(e, ": ")
			fmt.Fprintf(&b, "<item><title>%s</title><guid>%s</guid></item>", title, id)
		}
		return []byte(`<rss version="2.0"><channel><title>Feed</title>` + b.String() + `</channel></rss>`)
	}
	for _, tt := range []struct {
		name, contentType string
		old, new          []byte
		want              []string
	}{
		{"an edit, an item that came, one that went", "text/html", page("table", append(slices.Clone(jobs), numbered(0, 1)...), true),
			page("table", append(items("/9: Senior Go Developer | Oslo | Full time", "/1: Platform Engineer, payments | Bergen and Oslo | Full time"), jobs[1:]...), true),
			[]string{"new Senior Go Developer", "changed Platform Engineer, payments", "gone subject0 verb0 object0"}},
		{"a list of one", "text/html", release("1.2.3"), release("1.2.4"),
			[]string{"gone Release 1.2.3 is out now for everybody", "new Release 1.2.4 is out now for everybody"}},
		{"a nested list: one comes, one goes", "text/html", nested(leaves(li, "apples", "pears"), leaves(li, "leek", "cabbage")),
			nested(leaves(li, "apples", "quinces", "pears"), leaves(li, "leek")), []string{"new quinces from the hill", "gone cabbage from the hill"}},
		{"a nested list: an edit", "text/html", nested(leaves(li, "apples", "pears"), leaves(li, "leek")),
			nested(leaves(li, "apples", "pears"), leaves(li, "leek and leaves")), []string{"changed leek and leaves from the hill"}},
		{"a nested list: one moves", "text/html", nested(leaves(linkedLi, "apples", "pears"), leaves(linkedLi, "leek")),
			nested(leaves(linkedLi, "apples"), leaves(linkedLi, "leek", "pears")), []string{}},
		{"a nested list with links", "text/html", nested(leaves(linkedLi, "apples", "pears"), leaves(linkedLi, "leek")),
			nested(leaves(linkedLi, "apples"), leaves(linkedLi, "leek", "cabbage")), []string{"gone pears from the hill", "new cabbage from the hill"}},
		{"parts of an item with a link", "text/html", []byte(`<ul><li><a href="/a">Clerk</a><ul><li>Oslo</li><li>Full time</li></ul></li><li><a href="/b">Cook</a><ul><li>Oslo</li></ul></li></ul>`),
			[]byte(`<ul><li><a href="/a">Clerk</a><ul><li>Moss</li><li>Full time</li></ul></li><li><a href="/b">Cook</a><ul><li>Oslo</li></ul></li></ul>`), []string{"changed Clerk"}},
		{"a paragraph each", "text/html", linked("p", "Data Engineer", "Product Manager", "Clerk", "Go Developer, fintech"),
			linked("p", "Senior Go Developer", "Data Engineer", "Product Manager", "Clerk"),
			[]string{"new Senior Go Developer, Oslo, Full time", "gone Go Developer, fintech, Oslo, Full time"}},
		{"a div each", "text/html", linked("div", "Data Engineer", "Product Manager", "Clerk", "Go Developer, fintech"),
			linked("div", "Senior Go Developer", "Data Engineer", "Product Manager", "Clerk"),
			[]string{"new Senior Go Developer, Oslo, Full time", "gone Go Developer, fintech, Oslo, Full time"}},
		{"parts in divs without a class", "text/html", bare("a: Clerk | Berlin", "b: Baker | Nice", "c: Porter | Lima", "d: Nurse | Rome"),
			bare("c: Porter | Lima", "a: Clerk | Hamburg", "b: Baker | Nice", "d: Nurse | Rome"), []string{"changed Clerk"}},
		{"terms", "text/html", []byte(`<dl><dt>Anvil<dd>10.00<dt>Tongs<dd>7.20<dt>State<dd>open</dl>`), []byte(`<dl><dt>Anvil<dd>11.00<dt>Tongs<dd>7.20<dt>State<dd>closed</dl>`),
			[]string{"changed Anvil", "changed State"}},
		{"classes with a number", "text/html", numberedClasses(1), numberedClasses(0),
			[]string{"new subject0 verb0 object0", "gone subject4 verb4 object4"}},
		{"headings with links", "text/html", headed("/a: Storm over the coast | heavy rain", "/b: Calm at the lake", "/c: Snow in the hills | cold"),
			headed("/d: Storm over the lake | heavy rain", "/a: Storm over the coast", "/b: Calm at the lake"),
			[]string{"gone Snow in the hills", "new Storm over the lake", "changed Storm over the coast"}},
		{"paragraphs that are called div", "text/html", []byte(`<div>alpha beta gamma delta</div><div>one two three four</div><div>five six seven eight</div>`),
			[]byte(`<div>alpha beta gamma</div><div>one two nine ten</div><div>five six seven eight</div>`), []string{}},
		{"lists under headings with links", "text/html", []byte(`<h4><a href="/f">Fruit</a></h4><ul><li>apples</li><li>pears</li></ul><h4><a href="/v">Vegetables</a></h4>` +
			`<ul><li>leek</li></ul><h4><a href="/n">Nuts</a></h4><ul><li>almonds</li></ul>`), []byte(`<h4><a href="/f">Fruit</a></h4><ul><li>apples</li><li>pears</li><li>quinces</li></ul>` +
			`<h4><a href="/v">Vegetables</a></h4><ul><li>leek</li></ul><h4><a href="/n">Nuts</a></h4><ul><li>almonds</li></ul>`), []string{"new quinces"}},
		{"a feed", "application/rss+xml", feed("a: Storm over the coast", "b: Calm at the lake"), feed("c: Storm over the lake", "a: Storm over the coast"),
			[]string{"new Storm over the lake", "gone Calm at the lake"}},
		{"a calendar: another time, another name", "text/calendar", calendar("1: Choir | 20260101T180000Z", "2: Dance | 20260102T180000Z", "3: Yoga for all | 20260103T180000Z"),
			calendar("2: Dance | 20260102T180000Z", "3: Yoga | 20260103T180000Z", "1: Choir | 20260107T190000Z"), []string{"changed Yoga", "changed Choir"}},
		{"an array", "application/json", []byte(`[{"id":1,"name":"Lamp of brass","price":5},{"id":2,"name":"Lamp of steel","price":5}]`),
			[]byte(`[{"id":3,"name":"Lamp of glass","price":5},{"id":1,"name":"Lamp of brass","price":6}]`),
			[]string{"new Lamp of glass", "changed Lamp of brass", "gone Lamp of steel"}},
		{"a table of values", "text/csv", []byte("sku,name,price\nL1,Lamp of brass,5\nL2,Lamp of steel,5\n"),
			[]byte("sku,name,price\nL3,Lamp of glass,5\nL1,Lamp of brass,6\n"), []string{"new Lamp of glass", "changed Lamp of brass", "gone Lamp of steel"}},
		{"a JSON feed", "application/feed+json",
			[]byte(`{"version":"https://jsonfeed.org/version/1.1","title":"Feed","items":[{"id":"1","url":"https://example.com/1","title":"Storm","date_published":"2026-01-01"}]}`),
			[]byte(`{"version":"https://jsonfeed.org/version/1.1","title":"Feed","items":[{"id":"1","url":"https://example.com/one","title":"Storm","date_published":"2026-01-02","tags":["x"]}]}`),
			[]string{}},
	} {
		c := changeOf(t, tt.contentType, tt.old, tt.new)
		got := became(&c)
		if strings.Contains(tt.name, "array") || strings.Contains(tt.name, "values") || strings.Contains(tt.name, "list of one") {
			slices.Sort(got)
			slices.Sort(tt.want)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestLongItems: an item of any length is told as one.
func TestLongItems(t *testing.T) {
	paragraph := func(of, no int) string {
		return fmt.Sprintf("subject%d verb%d ", of, no) + words(fmt.Sprintf("w%d.%d.", of, no), 20)
	}
	type entry struct {
		id         int
		paragraphs []string
	}
	long := func(ids ...int) (all []entry) {
		for _, id := range ids {
			all = append(all, entry{id, []string{paragraph(id, 1), paragraph(id, 2), paragraph(id, 3)}})
		}
		return all
	}
	edited := long(1, 2, 3)
	edited[1].paragraphs[1] += " and one more"
	cut := long(1, 2, 3)
	cut[1].paragraphs = cut[1].paragraphs[1:]
	short := long(1, 2, 3)
	short[2].paragraphs = short[2].paragraphs[:1]
	for form, page := range map[string]func([]entry) (string, []byte){
		"feed": func(all []entry) (string, []byte) {
			var b strings.Builder
			for _, e := range all {
				fmt.Fprintf(&b, "<item><title>Title %d</title><guid>id%d</guid><description>&lt;p&gt;%s&lt;/p&gt;</description></item>", e.id, e.id, strings.Join(e.paragraphs, "&lt;/p&gt;&lt;p&gt;"))
			}
			return "application/rss+xml", []byte(`<rss version="2.0"><channel><title>Feed</title>` + b.String() + `</channel></rss>`)
		},
		"articles": func(all []entry) (string, []byte) {
			var b strings.Builder
			for _, e := range all {
				fmt.Fprintf(&b, "<article><h2>Title %d</h2><p>%s</p><p>Read more</p></article>", e.id, strings.Join(e.paragraphs, "</p><p>"))
			}
			return "text/html", []byte(b.String())
		},
		"linked headings": func(all []entry) (string, []byte) {
			var b strings.Builder
			for _, e := range all {
				fmt.Fprintf(&b, "<h2><a href='/%d'>Title %d</a></h2><p>%s</p>", e.id, e.id, strings.Join(e.paragraphs, "</p><p>"))
			}
			return "text/html", []byte(b.String())
		},
	} {
		for _, tt := range []struct {
			name     string
			old, new []entry
			want     []string
		}{
			{"one came, one went", long(1, 2, 3), long(4, 1, 2), []string{"gone Title 3", "new Title 4"}},
			{"all are new", long(1, 2, 3), long(4, 5, 6), []string{"gone Title 1", "gone Title 2", "gone Title 3", "new Title 4", "new Title 5", "new Title 6"}},
			{"an edit", long(1, 2, 3), edited, []string{"changed Title 2"}},
			{"a paragraph less", long(1, 2, 3), cut, []string{"changed Title 2"}},
			{"a short one came", long(1, 2), short, []string{"new Title 3"}},
		} {
			kind, old := page(tt.old)
			_, new := page(tt.new)
			c := changeOf(t, kind, old, new)
			got := became(&c)
			slices.Sort(got)
			if !slices.Equal(got, tt.want) {
				t.Errorf("%s of a %s: got %q, want %q", tt.name, form, got, tt.want)
			}
		}
	}
	article := func(first string) []byte {
		return []byte("<article><h1>Alone</h1><p>" + first + "</p><p>" + words("x", 50) + "</p></article>")
	}
	if c := changeOf(t, "text/html", article("one two three four"), article("one two three five")); !slices.Equal(became(&c), []string{}) {
		t.Errorf("a page of one article: got %q", became(&c))
	}
}

// words returns n words that begin with prefix.
func words(prefix string, n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint(prefix, i))
	}
	return strings.Join(all, " ")
}

// TestLinksAlone: a link that changes alone is no news.
func TestLinksAlone(t *testing.T) {
	c := changeOf(t, "text/html", page("list", jobs, true), page("list", renamed(jobs, "?v=2"), true))
	if len(c.Groups) > 0 {
		t.Errorf("got %d groups", len(c.Groups))
	}
}
