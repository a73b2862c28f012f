package html

import (
	"archive/tar"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pipelinetest"
)

// generator writes random HTML as people write it: optional end tags are left out,
// elements hidden, inline elements spread over words. It is nested as HTML allows.
type generator struct {
	r *rand.Rand
	strings.Builder
}

func (g *generator) pick(list ...string) string { return list[g.r.IntN(len(list))] }
func (g *generator) flip() bool                 { return g.r.IntN(2) == 0 }

func (g *generator) words() {
	for range g.r.IntN(4) {
		g.WriteString(g.pick("word", "Two", "7", " ", "zwei ", "&nbsp;", "&amp;", "é", "\n", "&#8203;", "1&shy;2", "<!-- c -->", " x.", "\t"))
	}
}

func (g *generator) attributes() string {
	return g.pick("", "", "", "", " class=x", " class='post-1 x'", " class='post-2 y'", " data-id=7", " hidden", ` style="display: none"`, " style='color:red'", " id='a>b'", ` data-cfemail="5c35323a331c39243d312c3039723f3331"`)
}

// open writes a start tag and returns its end.
func (g *generator) open(name string, optional bool) string {
	g.WriteString("<" + name + g.attributes() + ">")
	if optional && g.flip() {
		return ""
	}
	return "</" + name + ">"
}

func (g *generator) inline(depth int) {
	g.words()
	for range g.r.IntN(3) {
		if depth == 0 {
			break
		}
		switch g.r.IntN(11) {
		case 0:
			g.WriteString(g.pick("<br>", "<wbr>", "<img alt=x>", "<input value=x>", "<input type=Submit value='send it'>", "<input type=reset hidden value=x>", "<br/>"))
		case 1:
			g.WriteString(g.pick("<script>a<b>c</script>", "<style>p{}</style>", "<noscript><p>n</p></noscript>", "<svg><g><text>s</text><title>t</title></g></svg>",
				"<math><mi>x</mi><mo>=</mo><mfrac><mn>1</mn><mn>2</mn></mfrac></math>", "<math><semantics><mtext>a<b>c</b></mtext><annotation>no</annotation></semantics><mi>y</mi></math>",
				"<svg viewBox=1>no<g display=none><text>no</text></g><a><text>s<tspan>t</tspan></text></a><tspan/><foreignObject><p>f</p><div>g</div></foreignObject><desc><p>no</desc></svg>",
				"<svg><defs><text>no</text></defs><style><![CDATA[<text>no</text>]]></style><text><![CDATA[a < b]]></text><path d=1><text style='display:none'>no</text></svg>",
				"<math><annotation-xml encoding='text/html'><p>no</p></annotation-xml><mn>7</mn></math>", "<template shadowrootmode=Open><p>shadow<p>root</template>",
				"<template shadowrootmode=closed>in <em>place</em></template>", "<template shadowrootmode>no</template>",
				"<template><div>t</div></template>", "<iframe><p>i</p></iframe>", "<textarea><p>t</textarea>", "<object><p>o</p></object>", "<svg/>"))
		case 2:
			g.WriteString(`<a href="/cdn-cgi/l/email-protection#5c35323a331c39243d312c3039723f3331">` + g.pick("[email&#160;protected]", "mail") + "</a>")
		case 3:
			g.WriteString(`<a href="` + g.pick("/a", "/b?id=1&amp;sid=2", "/c#top", "mailto:x@example.com", "https://example.com/d") + `">` + g.pick("one", "Two", " ") + "</a>")
		default:
			end := g.open(g.pick("span", "em", "q", "label", "x-y", "cite"), false)
			g.inline(depth - 1)
			g.WriteString(end)
		}
		g.words()
	}
}

func (g *generator) blocks(depth int) {
	for range 1 + g.r.IntN(3) {
		if depth == 0 {
			g.inline(1)
			return
		}
		switch g.r.IntN(9) {
		case 0:
			end := g.open("p", true)
			g.inline(2)
			g.WriteString(end)
		case 1:
			end := g.open(g.pick("ul", "ol"), false)
			for range g.r.IntN(3) {
				end := g.open("li", true)
				g.flow(depth - 1)
				g.WriteString(end)
			}
			g.WriteString(end)
		case 2:
			end := g.open("dl", false)
			for range g.r.IntN(3) {
				end := g.open(g.pick("dt", "dd"), true)
				g.flow(depth - 1)
				g.WriteString(end)
			}
			g.WriteString(end)
		case 3:
			g.table(depth)
		case 4:
			end := g.open("pre", false)
			g.WriteString("\nline\n  two ")
			g.inline(1)
			g.WriteString(end)
		case 5:
			end := g.open("select", false)
			for range g.r.IntN(3) {
				end := g.open("option", true)
				g.words()
				g.WriteString(end)
			}
			g.WriteString(end)
		case 6:
			g.WriteString(g.pick("<hr>", "</p>", "</section>", "</span>", "</li>"))
		default:
			end := g.open(g.pick("div", "section", "article", "h2", "form", "blockquote", "footer"), false)
			g.flow(depth - 1)
			g.WriteString(end)
		}
	}
}

func (g *generator) flow(depth int) {
	if g.flip() {
		g.inline(2)
	} else {
		g.blocks(depth)
	}
}

func (g *generator) table(depth int) {
	end := g.open("table", false)
	if g.flip() {
		g.WriteString("<caption>cap</caption>")
	}
	for range g.r.IntN(3) {
		section := ""
		if g.flip() {
			section = g.open(g.pick("thead", "tbody", "tfoot"), true)
		}
		for range g.r.IntN(3) {
			row := g.open("tr", true)
			for range g.r.IntN(3) {
				cell := g.open(g.pick("td", "th"), true)
				g.flow(depth - 1)
				g.WriteString(cell)
			}
			g.WriteString(row)
		}
		g.WriteString(section)
	}
	g.WriteString(end)
}

// The scanner and the walker give the same text.
func TestSameText(t *testing.T) {
	for seed := range uint64(3000) {
		g := &generator{r: rand.New(rand.NewPCG(seed, 7))}
		g.WriteString("<!doctype html><html lang=en><head><title>Title &amp; more</title></head><body>")
		g.blocks(4)
		page := g.String()
		scanned, err := readHTML(t, page, pipeline.View{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := pipelinetest.CheckContent(scanned.Content); err != nil {
			t.Fatalf("seed %d: %v in %q", seed, err, scanned.Content)
		}
		parsed, err := readHTML(t, page, parsingView)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !reflect.DeepEqual(scanned, parsed) {
			t.Fatalf("seed %d: two texts of\n%s\nscanned %s\nparsed  %s", seed, page, showMarks.Replace(scanned.Content), showMarks.Replace(parsed.Content))
		}
	}
}

// The same on recorded pages, where there are some: VOKTER_CORPUS names a folder of
// NAME.tar.zst.
func TestSameTextOfRecordedPages(t *testing.T) {
	dir := os.Getenv("VOKTER_CORPUS")
	if dir == "" {
		t.Skip("VOKTER_CORPUS names no folder of recorded pages")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.tar.zst"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded pages in %s: %v", dir, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { checkSameText(t, file, 30) })
	}
}

func checkSameText(t *testing.T, file string, most int) {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	archive := tar.NewReader(z)
	for n := 0; n < most; n++ {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		scanned, err := readHTML(t, string(body), pipeline.View{})
		if err != nil {
			t.Errorf("%s: %v", h.Name, err)
			continue
		}
		parsed, err := readHTML(t, string(body), parsingView)
		if err != nil {
			t.Errorf("%s: %v", h.Name, err)
			continue
		}
		if !reflect.DeepEqual(scanned, parsed) {
			at := 0
			for at < min(len(scanned.Content), len(parsed.Content)) && scanned.Content[at] == parsed.Content[at] {
				at++
			}
			from := max(at-80, 0)
			t.Errorf("%s: two texts, from byte %d on:\nscanned %.200q\nparsed  %.200q", h.Name, at, scanned.Content[from:], parsed.Content[from:])
		}
		if err := pipelinetest.CheckContent(scanned.Content); err != nil {
			t.Errorf("%s: %v", h.Name, err)
		}
	}
}
