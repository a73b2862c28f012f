package charset

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"
)

func encode(t *testing.T, enc encoding.Encoding, s string) string {
	t.Helper()
	out, err := enc.NewEncoder().String(s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

const russian = "<p>Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и совестью и должны поступать в отношении друг друга в духе братства."

// notGreek looks like Greek, but for one letter.
const notGreek = "<p>Медный фонарь\n<p>Продаётся медный фонарь, цена три тысячи рублей. Заходите к нам."

// markedUp is a Russian page of few words and much markup.
var markedUp = "<title>Все люди</title><style>" + strings.Repeat("p.menu { margin: auto } ", 200) + "</style><p class=first>Рождаются свободными и равными</p>" +
	"<p class=second>в своем достоинстве и правах</p>"

func TestDecode(t *testing.T) {
	head := strings.Repeat("<!-- a head in ASCII -->", 100)
	for _, tc := range []struct{ name, body, contentType, want string }{
		{"nothing", "", "", ""},
		{"ASCII", "<p>cafe", "", "<p>cafe"},
		{"UTF-8", "café", "", "café"},
		{"UTF-8 behind an ASCII head", head + "café", "", head + "café"},
		{"UTF-8 and a lying header", "café", "text/html; charset=iso-8859-1", "café"},
		{"UTF-8 and a lying meta", "<meta charset=koi8-r>café", "text/html", "<meta charset=koi8-r>café"},
		{"mark UTF-8", "\xef\xbb\xbfcaf\xc3\xa9", "text/html; charset=koi8-r", "café"},
		{"mark UTF-8, damaged", "\xef\xbb\xbfcaf\xe9", "", "caf\ufffd"},
		{"mark UTF-16 BE", encode(t, unicode.UTF16(unicode.BigEndian, unicode.UseBOM), "café €"), "text/html; charset=koi8-r", "café €"},
		{"mark UTF-16 LE", encode(t, unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), "café €"), "", "café €"},
		{"UTF-16 by header", encode(t, unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), "café €"), "text/plain; charset=utf-16le", "café €"},
		{"UTF-16 by a lying header", "<p>cafe", "text/html; charset=utf-16", "<p>cafe"},
		{"UTF-16 by a lying meta", "<meta charset=utf-16>caf\xe9", "text/html", "<meta charset=utf-16>café"},
		{"header", encode(t, charmap.KOI8R, "привет"), "text/html; charset=KOI8-R", "привет"},
		{"header in single quotes", encode(t, charmap.KOI8R, "привет"), "text/html; charset='koi8-r'", "привет"},
		{"header without a semicolon", encode(t, charmap.KOI8R, "привет"), "text/html charset=koi8-r", "привет"},
		{"header with an odd parameter", encode(t, charmap.KOI8R, "привет"), "text/html; charset=koi8-r; a b", "привет"},
		{"two headers joined", encode(t, charmap.KOI8R, "привет"), "text/html; charset=koi8-r, text/html", "привет"},
		{"header before meta", "<meta charset=windows-1251>" + encode(t, charmap.KOI8R, "привет"), "text/html; charset=koi8-r", "<meta charset=windows-1251>привет"},
		{"meta", "<META CharSet='windows-1251'>" + encode(t, charmap.Windows1251, "привет"), "text/html", "<META CharSet='windows-1251'>привет"},
		{"meta, old", `<meta content="text/html; charset=shift_jis" http-equiv=Content-Type>` + encode(t, japanese.ShiftJIS, "日本"), "", `<meta content="text/html; charset=shift_jis" http-equiv=Content-Type>日本`},
		{"meta without a semicolon", `<meta http-equiv="Content-Type" content="text/html charset = 'windows-1251'">` + encode(t, charmap.Windows1251, "привет"), "text/html",
			`<meta http-equiv="Content-Type" content="text/html charset = 'windows-1251'">привет`},
		{"an unknown meta first", "<meta charset=cp-none><meta charset=windows-1251>" + encode(t, charmap.Windows1251, "привет"), "text/html", "<meta charset=cp-none><meta charset=windows-1251>привет"},
		{"meta behind a long script", "<head><script>" + strings.Repeat("a<b;", 5000) + "</script><meta charset=windows-1251>" + encode(t, charmap.Windows1251, "привет"), "text/html",
			"<head><script>" + strings.Repeat("a<b;", 5000) + "</script><meta charset=windows-1251>привет"},
		{"meta in a script", "<script>'<meta charset=koi8-r>'</script>caf\xe9", "text/html", "<script>'<meta charset=koi8-r>'</script>café"},
		{"meta far in the body", "<body>" + head + "<meta charset=koi8-r>caf\xe9", "text/html", "<body>" + head + "<meta charset=koi8-r>café"},
		{"a charset that is none in content", `<meta http-equiv=refresh content="0; charset=koi8-r">caf` + "\xe9", "text/html", `<meta http-equiv=refresh content="0; charset=koi8-r">café`},
		{"a calendar folded within letters", "SUMMARY:Caf\xc3\r\n \xa9 \xe2\n\t\x82\n\t\xac 5", "text/calendar", "SUMMARY:Café € 5"},
		{"a folded calendar in Latin-1", "SUMMARY:Caf\xe9\r\n \xe9", "text/calendar; charset=latin1", "SUMMARY:Café\r\n é"},
		{"markup between the words", encode(t, charmap.Windows1251, markedUp), "text/html", markedUp},
		{"markup between the words, KOI8", encode(t, charmap.KOI8R, markedUp), "text/html", markedUp},
		{"letters that Greek has not", encode(t, charmap.Windows1251, notGreek), "text/html", notGreek},
		{"a header that is wrong, and a declaration that is not", `<?xml version="1.0" encoding="windows-1251"?><a>` + encode(t, charmap.Windows1251, "медь"), "text/xml; charset=utf-8",
			`<?xml version="1.0" encoding="windows-1251"?><a>медь`},
		{"a header that is wrong, and a meta that is not", "<meta charset=koi8-r>" + encode(t, charmap.KOI8R, "медь"), "text/html; charset=utf-8", "<meta charset=koi8-r>медь"},
		{"GB 18030 by an older name", "<meta charset=gb2312>" + encode(t, simplifiedchinese.GB18030, "铜 𠀀"), "text/html", "<meta charset=gb2312>铜 𠀀"},
		{"one NUL", "Lamp: 12\x00 EUR", "text/plain", "Lamp: 12\x00 EUR"},
		{"many NULs", strings.Repeat("12\x00\x00\x00", 20), "text/plain", strings.Repeat("12\x00\x00\x00", 20)},
		{"meta in plain text", "<meta charset=koi8-r>caf\xe9", "text/plain", "<meta charset=koi8-r>café"},
		{"meta in a comment", "<!--<meta charset=koi8-r>-->caf\xe9", "text/html", "<!--<meta charset=koi8-r>-->café"},
		{"XML declaration", `<?xml version="1.0" encoding="windows-1251"?>` + encode(t, charmap.Windows1251, "привет"), "application/xhtml+xml", `<?xml version="1.0" encoding="windows-1251"?>привет`},
		{"escapes in ASCII", encode(t, japanese.ISO2022JP, "日本"), "text/html; charset=iso-2022-jp", "日本"},
		{"latin1 means windows-1252", "\x93caf\xe9\x94", "text/html; charset=latin1", "“café”"},
		{"UTF-8 declared, but Latin-1", "caf\xe9", "text/html; charset=utf-8", "café"},
		{"UTF-8 declared, damaged", "café \xe9 €", "text/html; charset=utf-8", "café \ufffd €"},
		{"undeclared UTF-8, one stray byte", strings.Repeat("Größe – ", 5) + "\xe9", "text/html", strings.Repeat("Größe – ", 5) + "\ufffd"},
		{"undeclared UTF-8, one stray byte, plain text", strings.Repeat("日", 10) + "\xff", "text/plain", strings.Repeat("日", 10) + "\ufffd"},
		{"undeclared UTF-8, one stray byte, no type", "\x93" + strings.Repeat("é", 10), "", "\ufffd" + strings.Repeat("é", 10)},
		{"undeclared, too many strays for UTF-8", encode(t, charmap.Windows1252, "<p>Tous les êtres humains naissent libres et égaux en dignité et en droits. Ã©"), "text/html",
			"<p>Tous les êtres humains naissent libres et égaux en dignité et en droits. Ã©"},
		{"a feed, one stray byte", strings.Repeat("é", 10) + "\xe9", "application/rss+xml", strings.Repeat("é", 10) + "\ufffd"},
		{"a feed in Latin-1", "<rss>caf\xe9</rss>", "application/rss+xml", "<rss>café</rss>"},
		{"JSON, one stray byte", "{\"a\": \"caf\xe9\"}", "application/json", "{\"a\": \"caf\ufffd\"}"},
		{"JSON by its suffix", "\"\xe9\"", "application/ld+json", "\"\ufffd\""},
		{"JSON with a charset", "\"\xe9\"", "application/json; charset=latin1", "\"é\""},
		{"JSON in UTF-16", encode(t, unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), `{"a": "café"}`), "application/json", `{"a": "café"}`},
		{"XML, one stray byte", "<a>caf\xe9</a>", "text/xml", "<a>caf\ufffd</a>"},
		{"XML, one stray byte, no encoding declared", "<?xml version='1.0'?><a>\xe9</a>", "image/svg+xml", "<?xml version='1.0'?><a>\ufffd</a>"},
		{"XML, a charset", "<a>\xe9</a>", "text/xml; charset=latin1", "<a>é</a>"},
		{"XML, an unknown encoding", "<?xml version='1.0' encoding='none'?><a>caf\xe9</a>", "text/xml", "<?xml version='1.0' encoding='none'?><a>café</a>"},
		{"an unknown name", "caf\xe9", "text/html; charset=none", "café"},
		{"a dangerous name", "cafe +ADw-script+AD4- \xe9", "text/html; charset=iso-2022-kr", "cafe +ADw-script+AD4- é"},
		{"a broken header", "caf\xe9", "text/html; charset=\"", "café"},
		{"undeclared French", encode(t, charmap.Windows1252, "<p>Tous les êtres humains naissent libres et égaux en dignité et en droits."), "", "<p>Tous les êtres humains naissent libres et égaux en dignité et en droits."},
		{"undeclared, one sign", "10 \xa3", "", "10 £"},
		{"undeclared Russian", encode(t, charmap.Windows1251, russian), "text/html", russian},
		{"undeclared KOI8-R", encode(t, charmap.KOI8R, russian), "text/html", russian},
		{"undeclared Shift_JIS", encode(t, japanese.ShiftJIS, "<p>これは日本語の文章です。今日は天気がいいですね。"), "", "<p>これは日本語の文章です。今日は天気がいいですね。"},
		{"undeclared EUC-JP", encode(t, japanese.EUCJP, "<p>これは日本語の文章です。今日は天気がいいですね。"), "", "<p>これは日本語の文章です。今日は天気がいいですね。"},
		{"undeclared EUC-KR", encode(t, korean.EUCKR, "<p>모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다."), "", "<p>모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다."},
		{"undeclared GB18030", encode(t, simplifiedchinese.GB18030, "<p>人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,并应以兄弟关系的精神相对待。"), "", "<p>人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,并应以兄弟关系的精神相对待。"},
		{"undeclared Big5", encode(t, traditionalchinese.Big5, "<p>人人生而自由,在尊嚴和權利上一律平等。他們賦有理性和良心,並應以兄弟關係的精神互相對待。"), "", "<p>人人生而自由,在尊嚴和權利上一律平等。他們賦有理性和良心,並應以兄弟關係的精神互相對待。"},
	} {
		if got := string(Decode([]byte(tc.body), tc.contentType)); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

// The detector's guesses come from goroutines that race; the result must not depend on them.
func TestDecodeIsDeterministic(t *testing.T) {
	for _, s := range []string{"caf\xe9 is open from 10 to 12", "\xcf\xe0\xf0\xea", "a\xb1b\xb1c", encode(t, charmap.Windows1251, russian)} {
		first := Decode([]byte(s), "")
		for range 200 {
			if got := Decode([]byte(s), ""); !bytes.Equal(got, first) {
				t.Fatalf("%q: got %q, then %q", s, first, got)
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("<meta charset=koi8-r>\xe9"), "text/html")
	f.Add([]byte("\xff\xfea"), "text/html; charset=utf-16")
	f.Add([]byte("<?xml encoding='big5'?>\x80\x81"), "")
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		before := bytes.Clone(body)
		got := Decode(body, contentType)
		if !utf8.Valid(got) {
			t.Errorf("%q is not valid UTF-8", got)
		}
		if !bytes.Equal(body, before) {
			t.Error("the input was written into")
		}
		if again := Decode(body, contentType); !bytes.Equal(got, again) {
			t.Errorf("got %q, then %q", got, again)
		}
		if utf8.Valid(body) && !isASCII(body) && !bytes.HasPrefix(body, []byte("\ufeff")) && !bytes.Equal(got, body) {
			t.Errorf("valid UTF-8 became %q", got)
		}
	})
}

func TestEncodings(t *testing.T) {
	names := map[string]bool{}
	for _, e := range encodings {
		names[e.name] = true
		if got := string(Decode([]byte(e.bytes), "text/plain; charset="+e.name)); got != e.text {
			t.Errorf("%s, declared by the header: got %q, want %q", e.name, got, e.text)
		}
		if strings.HasPrefix(e.name, "utf-16") {
			continue // a page in it cannot declare it
		}
		head := fmt.Sprintf("<html><head><meta charset=%q></head>", strings.ToUpper(e.name))
		if got := string(Decode([]byte(head+e.bytes), "text/html")); got != head+e.text {
			t.Errorf("%s, declared by the page: got %q", e.name, got)
		}
		declaration := fmt.Sprintf("<?xml version='1.0' encoding='%s'?>", e.name)
		if got := string(Decode([]byte(declaration+e.bytes), "application/xml")); got != declaration+e.text {
			t.Errorf("%s, declared by XML: got %q", e.name, got)
		}
	}
	if len(names) < 30 {
		t.Errorf("%d encodings are tested", len(names))
	}
}

// detectable are the encodings that a page of a sentence or two need not declare.
var detectable = strings.Fields(`shift_jis euc-jp iso-2022-jp euc-kr gb18030 gbk gb2312 big5 windows-1250 windows-1251 windows-1252 windows-1253
	windows-1254 windows-1255 windows-1256 iso-8859-1 iso-8859-5 iso-8859-6 iso-8859-7 iso-8859-8 iso-8859-9 koi8-r utf-16le utf-16be utf-8`)

func TestUndeclared(t *testing.T) {
	for _, e := range encodings {
		if !slices.Contains(detectable, e.name) {
			continue
		}
		before, after := "<html><body><p>", "</p></body></html>"
		page := before + e.bytes + after
		if strings.HasPrefix(e.name, "utf-16") {
			enc := unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
			if e.name == "utf-16be" {
				enc = unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
			}
			page = encode(t, enc, before+e.text+after)
		}
		if got := string(Decode([]byte(page), "text/html")); got != before+e.text+after {
			t.Errorf("%s: got %q", e.name, got)
		}
	}
}
