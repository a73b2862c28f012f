package text

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
)

func tokenTexts(s string) []string {
	out := []string{}
	for _, t := range Tokens(s) {
		out = append(out, s[t.Start:t.End])
	}
	return out
}

func TestTokens(t *testing.T) {
	for _, c := range []struct{ in, want string }{ // want: tokens joined by |
		{"", ""},
		{"!!! … — \"x\" «y»", "x|y"},
		{"Zeus. Out of stock.", "Zeus|Out|of|stock"},
		{"100-eyed e-mail", "100|eyed|e|mail"},
		{"12.50 1,000,000 .5 100% v1.2.3 3D 12:30 2024-01-02 1'299.00", "12.50|1,000,000|.5|100|%|v1.2.3|3D|12|30|2024|01|02|1'299.00"},
		{"€1,299.00 2026-11-21 COVID-19", "€|1,299.00|2026|11|21|COVID|19"},
		{"ASN.1 example.com www.example.com node.js U.S. z.B.", "ASN|1|example|com|www|example|com|node|js|U|S|z|B"},
		{"https://www.example.com/a-b/c_d.html?id=12&lang=en#top", "https|www|example|com|a|b|c_d|html|id|=|12|lang|=|en|top"},
		{"user@example.com a.b+c@d.org", "user|example|com|a|b|+|c|d|org"},
		{"du personnel.Pour tous, zeus.argus כן.לא हाँ.नहीं", "du|personnel|Pour|tous|zeus|argus|כן|לא|हाँ|नहीं"},
		{"operati[email protected]", "operati|email|protected"},
		{"prix:Pour 12:30 5;6 Paris·Lyon col·lecció COL·LECCIÓ L·l", "prix|Pour|12|30|5|6|Paris|Lyon|col·lecció|COL·LECCIÓ|L·l"},
		{"1，2 １，２ ١،٢ 1,2 1、2", "1|2|１|２|١|٢|1,2|1|2"},
		{"全角．ａ．ｂ", "全|角|ａ|ｂ"},
		{"AT&T R&D PG&E S&P's A&B&C a & b", "AT&T|R&D|PG&E|S&P's|A&B&C|a|b"},
		{"Marks&Spencer AT&Tower A&B&Company x1&y", "Marks|Spencer|AT|Tower|A&B|Company|x1|y"},
		{".NET (.NET) “#tag” #tag wait...what x. .argus first", ".|NET|.|NET|#|tag|#|tag|wait|what|x|.|argus|first"},
		{"#42 a.NET ASP.NET x#y", "#|42|a|NET|ASP|NET|x|y"},
		{"## heading ##h Introduction# issue#42", "heading|h|Introduction|issue|42"},
		{"C++ c# F#, C#/F# Notepad++ C++17 C+++ A#b", "C++|c#|F#|C#|F#|Notepad++|C++|17|C|+++|A|b"},
		{"don't it’s O'Brien Argus' rock'n'roll", "don't|it’s|O'Brien|Argus|rock'n'roll"},
		{"l'été d’accord qu'il dell'arte un'altra L'Aquila", "l|été|d|accord|qu|il|dell|arte|un|altra|L|Aquila"},
		{"d's aujourd'hui c'", "d's|aujourd'hui|c"},
		{"l'́", "l"}, // a mark alone is no letter
		{"__init__ foo_bar ___ _x", "init|foo_bar|x"},
		{"é e\u0301 naïve", "é|e\u0301|naïve"},
		{"m² ½ №5", "m|²|½|№|5"},
		{"東京都 かな カタカナ コーヒー", "東|京|都|か|な|カ|タ|カ|ナ|コ|ー|ヒ|ー"},
		{"ガ ｶﾞ", "ガ|ｶﾞ"}, // a voiced mark belongs to its character
		{"한국어를 LG전자 3개월", "한|국|어|를|LG|전|자|3|개|월"},
		{"ไทย ກິນ ខ្ញុំ မြန်", "ไ|ท|ย|ກິ|ນ|ខ្|ញុំ|မြ|န်"},
		{"नमस्ते мир שלום مرحبا", "नमस्ते|мир|שלום|مرحبا"},
		{"a\xffb \x00 c\xc3", "a|b|c"},
		{"ـ مـرحـبا", "مـرحـبا"},
		{"soft\u00ADhyphen", "soft\u00ADhyphen"},
	} {
		if got := strings.Join(tokenTexts(c.in), "|"); got != c.want {
			t.Errorf("Tokens(%q)\n got %q\nwant %q", c.in, got, c.want)
		}
	}
}

// TestSigns has tokens of which some are signs: these stand in brackets.
func TestSigns(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		// Symbols.
		{"✔ yes ✘ no ★★★ 20 °C 5℃ © ™ → ↑ ▲ ● ■ █", "[✔] yes [✘] no [★] [★] [★] 20 [°] C 5 [℃] [©] [™] [→] [↑] [▲] [●] [■] [█]"},
		{"$10 10 € €9.99 US$5 £ ¥ ₿ ￥", "[$] 10 10 [€] [€] 9.99 US [$] 5 [£] [¥] [₿] [￥]"},
		{"5 % 5‰ 5％ ٪", "5 [%] 5 [‰] 5 [％] [٪]"},
		// Emoji are whole.
		{"🟢🔴 👩‍👩‍👧 🇩🇪🇫🇷 👍🏽 ✔️ ❤️‍🔥 1️⃣ #️⃣ *️⃣ ‼️ a🔥b", "[🟢] [🔴] [👩‍👩‍👧] [🇩🇪] [🇫🇷] [👍🏽] [✔️] [❤️‍🔥] 1️⃣ [#️⃣] [*️⃣] [‼️] a [🔥] b"},
		// Operators.
		{"a>=5 b<= c != d == e < > ≤≥≠ =\u0338 x=1 a=>b ->x <- <> === 1+1 ±3 ×4 <b>", "a [>=] 5 b [<=] c [!=] d [==] e [<] [>] [≤] [≥] [≠] [=\u0338] x [=] 1 a [=>] b [->] x [<-] [<>] [===] 1 [+] 1 [±] 3 [×] 4 [<] b [>]"},
		{"A+ 18+ +49 Wow! Wow!<5 C+++", "A [+] 18 [+] [+] 49 Wow Wow [<] 5 C [+++]"},
		{"==== a ---- +---+---+ ~~~~ >>>>> ++++ -- <---->", "a"},
		// A minus, and what is none.
		{"-5 −5 –5 －5 -.5 -$5 $-5 −€5 (-5) [1,-2] t:-3 >-5 x=-5 |-5| ~5", "[-] 5 [−] 5 [–] 5 [－] 5 [-] .5 [-] [$] 5 [$] [-] 5 [−] [€] 5 [-] 5 1 [-] 2 t [-] 3 [>] [-] 5 x [=] [-] 5 [-] 5 [~] 5"},
		{"5-7 5−7 5–7 2026-11-27 0800-555-12 A-5 (030)-55 1e-5 5 - 7 a - b – c - 5 --5 5~7 10時～12時 foo- -x", "5 7 5 7 5 7 2026 11 27 0800 555 12 A 5 030 55 1e 5 5 7 a b c 5 5 5 7 10 時 12 時 foo x"},
		// What only sets texts apart.
		{"• a · b ‣ c ◦ d ▪ e ▸ f ► g ∙ h * i | j ¦ k │ l ─ ` ´ ^ ¶ § … \u00a0 “x” „y‟ «z» ‹q› 、。 / \\ & @ ? ! ; : \ufffd \ufffc", "a b c d e f g h i j k l x y z q"},
		// Words stay words.
		{"C++ C# .NET #tag AT&T x++ a&b -C++", "C++ C# . NET # tag AT&T x++ a&b C++"},
	} {
		var got []string
		for _, s := range tokenTexts(c.in) {
			if IsSign(s) {
				s = "[" + s + "]"
			}
			got = append(got, s)
		}
		if got := strings.Join(got, " "); got != c.want {
			t.Errorf("Tokens(%q)\n got %s\nwant %s", c.in, got, c.want)
		}
	}
}

// TestSignsThatAreOne: kinds of minus, and emoji with and without a selector of their style, are the same.
func TestSignsThatAreOne(t *testing.T) {
	n := NewLanguages().Normalizer("en")
	for a, b := range map[string]string{"−": "-", "–": "-", "✔️": "✔", "❤️‍🔥": "❤‍🔥"} {
		if n.Term(a, 0) != n.Term(b, 0) {
			t.Errorf("%s is not %s", a, b)
		}
	}
	for a, b := range map[string]string{"＄": "$", "％": "%", "＜": "<", "－": "-"} {
		if n.Term(a, FormCase) != n.Term(b, FormCase) {
			t.Errorf("%s is not %s", a, b)
		}
	}
	if n.Term("✔", FormCase) == n.Term("✘", FormCase) {
		t.Error("✔ is ✘")
	}
}

func TestAnalyze(t *testing.T) {
	items := func(n int) string { return "\x02" + strings.Repeat("w ", n) + "\n\x03" }
	for _, c := range []struct{ name, in, want string }{ // unit: blocks; blocks by /, units by |
		{"empty", "", ""},
		{"blocks", "Title\nA b.\n\n!!!\nc\n", "Title|A b.|c"},
		{"no last end", "a\nb", "a|b"},
		{"row of cells", "\x02a b\nc\n\x03d\n", "a b/c|d"},
		{"nested, the outermost counts", "\x02a\n\x02b\n\x03\x02c\n\x03\x03d\n", "a/b/c|d"},
		{"mark within a block", "a\x02b\nc\x03d\n", "a|b/c|d"},
		{"end without a start", "\x03a\n\x03b\n", "a|b"},
		{"start without an end", "a\n\x02b\nc\n", "a|b/c"},
		{"empty item", "\x02\x03\x02!\n\x03a\n", "a"},
		{"40 tokens", items(20)[:41] + items(20) + "\n\x03", "w*20/w*20"},
		{"41 tokens: the inner ones", "\x02x\n" + items(20) + items(20) + "\x03", "x|w*20|w*20"},
		{"a long first inner item", "\x02" + items(41) + "y\nz\n\x03", "w*41|y|z"},
	} {
		d := Analyze(c.in)
		var units []string
		for i, u := range d.Units {
			var blocks []string
			for b := u.FirstBlock; b < u.LastBlock; b++ {
				if d.Blocks[b].Unit != i {
					t.Errorf("%s: block %d has unit %d, want %d", c.name, b, d.Blocks[b].Unit, i)
				}
				s := c.in[d.Blocks[b].Start:d.Blocks[b].End]
				if n := strings.Count(s, "w "); n > 1 {
					s = fmt.Sprintf("w*%d", n)
				}
				blocks = append(blocks, s)
			}
			units = append(units, strings.Join(blocks, "/"))
		}
		if got := strings.Join(units, "|"); got != c.want {
			t.Errorf("%s: Analyze(%q)\n got %q\nwant %q", c.name, c.in, got, c.want)
		}
	}
}

func TestVisible(t *testing.T) {
	in := "Title\n\x02a b\n \n\x02c\n\x03\x03\n!!!\nend"
	if got, want := string(appendVisible(nil, in)), "Title\na b\nc\n!!!\nend"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if Hash(in) != Hash("Title\na b\nc\n!!!\nend\n") {
		t.Error("marks change the hash")
	}
	if Hash("a\nb\n") == Hash("a b\n") {
		t.Error("a border does not change the hash")
	}
	if got, want := Hash(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"; got != want {
		t.Errorf("Hash(\"\") = %s, want %s", got, want)
	}
}

// checkDoc fails where d breaks what Doc promises.
func checkDoc(t *testing.T, d *Doc) {
	t.Helper()
	starts := map[int]bool{len(d.Content): true}
	for i := range d.Content {
		starts[i] = true
	}
	last := 0
	for i, k := range d.Tokens {
		if k.Start < last || k.End <= k.Start || k.End > len(d.Content) || !starts[k.Start] || !starts[k.End] {
			t.Fatalf("token %d %v behind %d in %q", i, k, last, d.Content)
		}
		if Fold(d.Text(i)) == "" {
			t.Fatalf("token %q folds to nothing", d.Text(i))
		}
		last = k.End
	}
	at := 0
	for i, b := range d.Blocks {
		if b.First != at || b.Last <= b.First {
			t.Fatalf("block %d has tokens [%d,%d), want from %d", i, b.First, b.Last, at)
		}
		at = b.Last
		if d.Tokens[b.First].Start < b.Start || d.Tokens[b.Last-1].End > b.End || strings.ContainsAny(d.Content[b.Start:b.End], "\n\x02\x03") {
			t.Fatalf("block %d %v does not hold its tokens, or marks", i, b)
		}
		if alone := Tokens(d.Content[b.Start:b.End]); len(alone) != b.Last-b.First {
			t.Fatalf("block %q has %d tokens in its text, %d alone", d.Content[b.Start:b.End], b.Last-b.First, len(alone))
		}
	}
	if at != len(d.Tokens) {
		t.Fatalf("blocks end at token %d of %d", at, len(d.Tokens))
	}
	at = 0
	for i, u := range d.Units {
		if u.FirstBlock != at || u.LastBlock <= u.FirstBlock {
			t.Fatalf("unit %d is %v, want from %d", i, u, at)
		}
		at = u.LastBlock
	}
	if at != len(d.Blocks) {
		t.Fatalf("units end at block %d of %d", at, len(d.Blocks))
	}
	packed := PackTokens(d)
	if got, ok := unpackDoc(d.Content, nil, packed); !ok || !equalDocs(got, d) {
		t.Fatalf("unpacked %+v (%v), want %+v", got, ok, d)
	}
	if len(packed) > len(d.Content)+11 {
		t.Fatalf("%d bytes for the tokens of a text of %d", len(packed), len(d.Content))
	}
}

func FuzzAnalyze(f *testing.F) {
	for _, s := range []string{
		"", "Title\n\x02a b\nc\n\x03d", "C++ .NET AT&T l'eau 12.50 don't", "漢字カナ한글ไทย", "a\xffb\x03\x02", "e\u0301\u200d'\u0301x", "ﾞa",
	} {
		f.Add(s)
	}
	languages := NewLanguages()
	var all []*Normalizer
	for _, l := range languages.All() {
		all = append(all, languages.Normalizer(l.Code))
	}
	f.Fuzz(func(t *testing.T, s string) {
		d := Analyze(s)
		checkDoc(t, d)
		for i := range d.Tokens {
			w := d.Text(i)
			n := all[len(w)%len(all)]
			if n.Term(w, 0) == "" || n.Term(w, FormStem|FormMarks) == "" {
				t.Fatalf("token %q has an empty term in %s", w, n.Language())
			}
		}
		if lang := Detect(s); Detect(s) != lang {
			t.Fatalf("the language of %q is not always %q", s, lang)
		}
	})
}

func equalDocs(a, b *Doc) bool {
	return a.Content == b.Content && slices.Equal(a.Tokens, b.Tokens) && slices.Equal(a.Blocks, b.Blocks) && slices.Equal(a.Units, b.Units)
}

func TestPackTokens(t *testing.T) {
	content := "Zeus is\x02in — stock\n\x03C++"
	want := Analyze(content)
	b := PackTokens(want)
	if got, ok := unpackDoc(content, nil, b); !ok || !equalDocs(got, want) {
		t.Errorf("got %+v (%v), want %+v", got, ok, want)
	}
	long := strings.Repeat("The hundred eyes of Argus never slept all at once.\n", 100)
	if d := Analyze(long); len(PackTokens(d)) > len(d.Tokens)*13/10 {
		t.Errorf("%d bytes for %d tokens", len(PackTokens(d)), len(d.Tokens))
	}
}

// TestAnalyzePackedFindsTokens hands AnalyzePacked what cannot be the tokens of the text.
func TestAnalyzePackedFindsTokens(t *testing.T) {
	content := "Zeus is\x02in — stock\n\x03C++"
	want := Analyze(content)
	b := PackTokens(want)
	bad := map[string][]byte{
		"nothing":                  nil,
		"another format":           append([]byte{packedFormat + 1}, b[1:]...),
		"bytes too many":           append(slices.Clone(b), 0),
		"tokens of a longer text":  PackTokens(Analyze(content + " and Hera")),
		"a token across a mark":    PackTokens(&Doc{Tokens: []Token{{0, 10}}}),
		"a token that is a mark":   PackTokens(&Doc{Tokens: []Token{{0, 4}, {7, 8}}}),
		"a token without a letter": {packedFormat, 1, 0},
		"more tokens than bytes":   {packedFormat, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1},
	}
	for i := range b {
		bad[fmt.Sprintf("the first %d bytes", i)] = b[:i]
	}
	for name, packed := range bad {
		if _, ok := unpackDoc(content, nil, packed); ok {
			t.Errorf("%s: taken for the tokens of the text", name)
		}
		if got := AnalyzePacked(content, nil, packed); !equalDocs(got, want) {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}

// TestPackedFormat fails when the same texts have other tokens than before, also by an update of
// a library or of Go: raise packedFormat then, so that tokens of earlier programs are found
// again, and only then change the sums.
func TestPackedFormat(t *testing.T) {
	h := sha256.New()
	for _, s := range []string{
		"C++ .NET AT&T a@b.com #tag C# x++ l'eau dell’arte 12.50 don't R&D _a_ e\u0301\u200d'\u0301x 1,000.5 3:45 a.b a:b",
		"漢字カナー한글ไทย ລາວ ខ្មែរ မြန်မာ ｶﾞﾞ 日本語のテキスト Ελλάδα ά́ Привет мир עברית \"ש״ח\" العَرَبِيَّة कि क्ष தமிழ் አማርኛ Ꭰ 𝒳 ① ½ ² ٣ 🔥 👩‍👩‍👧 🇩🇪",
		"<a>\x02b\nc\n\x03d \xff \u00ad soft\u00adhyphen zero\u200bwidth non\u00a0breaking tatـweel under_score semi;colon quest'anno jusqu'à",
	} {
		h.Write(PackTokens(Analyze(s)))
	}
	got := fmt.Sprintf("%d %x", packedFormat, h.Sum(nil)[:8])
	if want := "3 8be25b594cfd91eb"; got != want {
		t.Errorf("format and sum of tokens are %s, want %s", got, want)
	}
}

func TestValidKeyword(t *testing.T) {
	for k, ok := range map[string]bool{
		"argus": true, "C++": true, "!!!": false, "": false, "🔥": true, "≥": true, "$": true, "-": false, "•": false,
		strings.Repeat("a ", 16): true, strings.Repeat("a ", 17): false,
	} {
		if err := ValidKeyword(k); (err == nil) != ok {
			t.Errorf("ValidKeyword(%q) = %v", k, err)
		}
	}
}

// benchTexts are texts of size bytes, or a little less.
func benchTexts(size int) map[string]string {
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	return map[string]string{
		"english":   fill("The hundred eyes of Argus never slept all at once, said Ovid in 8 AD.\n"),
		"french":    fill("L’été, d'après l'élève, c'est l'époque où l'on dort à la belle étoile.\n"),
		"russian":   fill("Великан с сотней глаз стерёг телицу днём и ночью.\n"),
		"chinese":   fill("百眼巨人日夜看守母牛，他的眼睛从不同时闭上。\n"),
		"signs":     fill("C++, C#, .NET, AT&T: user@example.com pays €1,299.00 on 2026-11-21.\n"),
		"one line":  fill("argus "),
		"one word":  fill("a"),
		"full stop": fill("a."),
		"ampersand": fill("a&"),
		"mark":      "a" + fill("\u0301"),
	}
}

func BenchmarkAnalyze(b *testing.B) {
	for _, size := range []int{20 << 10, pipeline.MaxText} {
		for name, content := range benchTexts(size) {
			b.Run(fmt.Sprintf("%s/%dKiB", name, size>>10), func(b *testing.B) {
				b.SetBytes(int64(len(content)))
				b.ReportAllocs()
				for b.Loop() {
					Analyze(content)
				}
			})
		}
	}
}
