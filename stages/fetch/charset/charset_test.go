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

// encodings has texts in the bytes of an encoding, made by other programs than those under test.
var encodings = []struct{ name, text, bytes string }{
	{"shift_jis", "これは日本語の文章です。天気がよいので散歩に行きましょう。新聞によると、カタカナも読めます。東京では明日も晴れるでしょう。", "\x82\xb1\x82\xea\x82\xcd\x93\xfa\x96{\x8c\xea\x82\xcc\x95\xb6\x8f\xcd\x82\xc5\x82\xb7\x81B\x93V\x8bC\x82\xaa\x82\xe6\x82\xa2\x82\xcc\x82\xc5\x8eU\x95\xe0\x82\xc9\x8ds\x82\xab\x82\xdc\x82\xb5\x82\xe5\x82\xa4\x81B\x90V\x95\xb7\x82\xc9\x82\xe6\x82\xe9\x82\xc6\x81A\x83J\x83^\x83J\x83i\x82\xe0\x93\xc7\x82\xdf\x82\xdc\x82\xb7\x81B\x93\x8c\x8b\x9e\x82\xc5\x82\xcd\x96\xbe\x93\xfa\x82\xe0\x90\xb0\x82\xea\x82\xe9\x82\xc5\x82\xb5\x82\xe5\x82\xa4\x81B"},
	{"euc-jp", "これは日本語の文章です。天気がよいので散歩に行きましょう。新聞によると、カタカナも読めます。東京では明日も晴れるでしょう。", "\xa4\xb3\xa4\xec\xa4\xcf\xc6\xfc\xcb\xdc\xb8\xec\xa4\xce\xca\xb8\xbe\xcf\xa4\xc7\xa4\xb9\xa1\xa3\xc5\xb7\xb5\xa4\xa4\xac\xa4\xe8\xa4\xa4\xa4\xce\xa4\xc7\xbb\xb6\xca\xe2\xa4\xcb\xb9\xd4\xa4\xad\xa4\xde\xa4\xb7\xa4\xe7\xa4\xa6\xa1\xa3\xbf\xb7\xca\xb9\xa4\xcb\xa4\xe8\xa4\xeb\xa4\xc8\xa1\xa2\xa5\xab\xa5\xbf\xa5\xab\xa5\xca\xa4\xe2\xc6\xc9\xa4\xe1\xa4\xde\xa4\xb9\xa1\xa3\xc5\xec\xb5\xfe\xa4\xc7\xa4\xcf\xcc\xc0\xc6\xfc\xa4\xe2\xc0\xb2\xa4\xec\xa4\xeb\xa4\xc7\xa4\xb7\xa4\xe7\xa4\xa6\xa1\xa3"},
	{"iso-2022-jp", "これは日本語の文章です。天気がよいので散歩に行きましょう。新聞によると、カタカナも読めます。東京では明日も晴れるでしょう。", "\x1b$B$3$l$OF|K\x5c8l$NJ8>O$G$9!#E75$$,$h$$$N$G;6Jb$K9T$-$^$7$g$&!#?7J9$K$h$k$H!\x22%+%?%+%J$bFI$a$^$9!#El5~$G$OL@F|$b@2$l$k$G$7$g$&!#\x1b(B"},
	{"euc-kr", "이것은 한국어 문장입니다. 날씨가 좋아서 산책을 갑시다. 신문에 따르면 내일도 맑을 것입니다. 서울에서 만나요.", "\xc0\xcc\xb0\xcd\xc0\xba \xc7\xd1\xb1\xb9\xbe\xee \xb9\xae\xc0\xe5\xc0\xd4\xb4\xcf\xb4\xd9. \xb3\xaf\xbe\xbe\xb0\xa1 \xc1\xc1\xbe\xc6\xbc\xad \xbb\xea\xc3\xa5\xc0\xbb \xb0\xa9\xbd\xc3\xb4\xd9. \xbd\xc5\xb9\xae\xbf\xa1 \xb5\xfb\xb8\xa3\xb8\xe9 \xb3\xbb\xc0\xcf\xb5\xb5 \xb8\xbc\xc0\xbb \xb0\xcd\xc0\xd4\xb4\xcf\xb4\xd9. \xbc\xad\xbf\xef\xbf\xa1\xbc\xad \xb8\xb8\xb3\xaa\xbf\xe4."},
	{"gb18030", "这是一个中文句子。今天天气很好，我们去散步吧。报纸上说，明天也会是晴天。请在北京与我们见面。", "\xd5\xe2\xca\xc7\xd2\xbb\xb8\xf6\xd6\xd0\xce\xc4\xbe\xe4\xd7\xd3\xa1\xa3\xbd\xf1\xcc\xec\xcc\xec\xc6\xf8\xba\xdc\xba\xc3\xa3\xac\xce\xd2\xc3\xc7\xc8\xa5\xc9\xa2\xb2\xbd\xb0\xc9\xa1\xa3\xb1\xa8\xd6\xbd\xc9\xcf\xcb\xb5\xa3\xac\xc3\xf7\xcc\xec\xd2\xb2\xbb\xe1\xca\xc7\xc7\xe7\xcc\xec\xa1\xa3\xc7\xeb\xd4\xda\xb1\xb1\xbe\xa9\xd3\xeb\xce\xd2\xc3\xc7\xbc\xfb\xc3\xe6\xa1\xa3"},
	{"gbk", "这是一个中文句子。今天天气很好，我们去散步吧。报纸上说，明天也会是晴天。请在北京与我们见面。", "\xd5\xe2\xca\xc7\xd2\xbb\xb8\xf6\xd6\xd0\xce\xc4\xbe\xe4\xd7\xd3\xa1\xa3\xbd\xf1\xcc\xec\xcc\xec\xc6\xf8\xba\xdc\xba\xc3\xa3\xac\xce\xd2\xc3\xc7\xc8\xa5\xc9\xa2\xb2\xbd\xb0\xc9\xa1\xa3\xb1\xa8\xd6\xbd\xc9\xcf\xcb\xb5\xa3\xac\xc3\xf7\xcc\xec\xd2\xb2\xbb\xe1\xca\xc7\xc7\xe7\xcc\xec\xa1\xa3\xc7\xeb\xd4\xda\xb1\xb1\xbe\xa9\xd3\xeb\xce\xd2\xc3\xc7\xbc\xfb\xc3\xe6\xa1\xa3"},
	{"gb2312", "这是一个中文句子。今天天气很好，我们去散步吧。报纸上说，明天也会是晴天。请在北京与我们见面。", "\xd5\xe2\xca\xc7\xd2\xbb\xb8\xf6\xd6\xd0\xce\xc4\xbe\xe4\xd7\xd3\xa1\xa3\xbd\xf1\xcc\xec\xcc\xec\xc6\xf8\xba\xdc\xba\xc3\xa3\xac\xce\xd2\xc3\xc7\xc8\xa5\xc9\xa2\xb2\xbd\xb0\xc9\xa1\xa3\xb1\xa8\xd6\xbd\xc9\xcf\xcb\xb5\xa3\xac\xc3\xf7\xcc\xec\xd2\xb2\xbb\xe1\xca\xc7\xc7\xe7\xcc\xec\xa1\xa3\xc7\xeb\xd4\xda\xb1\xb1\xbe\xa9\xd3\xeb\xce\xd2\xc3\xc7\xbc\xfb\xc3\xe6\xa1\xa3"},
	{"big5", "這是一個中文句子。今天天氣很好，我們去散步吧。報紙上說，明天也會是晴天。請在臺北與我們見面。", "\xb3o\xacO\xa4@\xad\xd3\xa4\xa4\xa4\xe5\xa5y\xa4l\xa1C\xa4\xb5\xa4\xd1\xa4\xd1\xae\xf0\xab\xdc\xa6n\xa1A\xa7\xda\xad\xcc\xa5h\xb4\xb2\xa8B\xa7a\xa1C\xb3\xf8\xaf\xc8\xa4W\xbb\xa1\xa1A\xa9\xfa\xa4\xd1\xa4]\xb7|\xacO\xb4\xb8\xa4\xd1\xa1C\xbd\xd0\xa6b\xbbO\xa5_\xbbP\xa7\xda\xad\xcc\xa8\xa3\xad\xb1\xa1C"},
	{"windows-1250", "Zażółć gęślą jaźń. Dzisiaj jest ładna pogoda, chodźmy na spacer. Łódź leży w środku Polski.", "Za\xbf\xf3\xb3\xe6 g\xea\x9cl\xb9 ja\x9f\xf1. Dzisiaj jest \xb3adna pogoda, chod\x9fmy na spacer. \xa3\xf3d\x9f le\xbfy w \x9crodku Polski."},
	{"windows-1251", "Это предложение на русском языке. Сегодня хорошая погода, пойдём гулять. Газета пишет, что завтра тоже будет солнечно.", "\xdd\xf2\xee \xef\xf0\xe5\xe4\xeb\xee\xe6\xe5\xed\xe8\xe5 \xed\xe0 \xf0\xf3\xf1\xf1\xea\xee\xec \xff\xe7\xfb\xea\xe5. \xd1\xe5\xe3\xee\xe4\xed\xff \xf5\xee\xf0\xee\xf8\xe0\xff \xef\xee\xe3\xee\xe4\xe0, \xef\xee\xe9\xe4\xb8\xec \xe3\xf3\xeb\xff\xf2\xfc. \xc3\xe0\xe7\xe5\xf2\xe0 \xef\xe8\xf8\xe5\xf2, \xf7\xf2\xee \xe7\xe0\xe2\xf2\xf0\xe0 \xf2\xee\xe6\xe5 \xe1\xf3\xe4\xe5\xf2 \xf1\xee\xeb\xed\xe5\xf7\xed\xee."},
	{"windows-1252", "Voilà une phrase française, où l’été déçoit ; garçon, un café crème à 12 € s’il vous plaît.", "Voil\xe0 une phrase fran\xe7aise, o\xf9 l\x92\xe9t\xe9 d\xe9\xe7oit ; gar\xe7on, un caf\xe9 cr\xe8me \xe0 12 \x80 s\x92il vous pla\xeet."},
	{"windows-1253", "Αυτή είναι μια ελληνική πρόταση. Σήμερα ο καιρός είναι καλός, πάμε μια βόλτα. Ο Δίας μένει στον Όλυμπο.", "\xc1\xf5\xf4\xde \xe5\xdf\xed\xe1\xe9 \xec\xe9\xe1 \xe5\xeb\xeb\xe7\xed\xe9\xea\xde \xf0\xf1\xfc\xf4\xe1\xf3\xe7. \xd3\xde\xec\xe5\xf1\xe1 \xef \xea\xe1\xe9\xf1\xfc\xf2 \xe5\xdf\xed\xe1\xe9 \xea\xe1\xeb\xfc\xf2, \xf0\xdc\xec\xe5 \xec\xe9\xe1 \xe2\xfc\xeb\xf4\xe1. \xcf \xc4\xdf\xe1\xf2 \xec\xdd\xed\xe5\xe9 \xf3\xf4\xef\xed \xbc\xeb\xf5\xec\xf0\xef."},
	{"windows-1254", "Bu Türkçe bir cümledir. Bugün hava çok güzel, İstanbul ışıl ışıl, yürüyüşe çıkalım.", "Bu T\xfcrk\xe7e bir c\xfcmledir. Bug\xfcn hava \xe7ok g\xfczel, \xddstanbul \xfd\xfe\xfdl \xfd\xfe\xfdl, y\xfcr\xfcy\xfc\xfee \xe7\xfdkal\xfdm."},
	{"windows-1255", "זהו משפט בעברית. היום מזג האוויר טוב, בואו נלך לטייל. העיתון כותב שגם מחר יהיה יפה.", "\xe6\xe4\xe5 \xee\xf9\xf4\xe8 \xe1\xf2\xe1\xf8\xe9\xfa. \xe4\xe9\xe5\xed \xee\xe6\xe2 \xe4\xe0\xe5\xe5\xe9\xf8 \xe8\xe5\xe1, \xe1\xe5\xe0\xe5 \xf0\xec\xea \xec\xe8\xe9\xe9\xec. \xe4\xf2\xe9\xfa\xe5\xef \xeb\xe5\xfa\xe1 \xf9\xe2\xed \xee\xe7\xf8 \xe9\xe4\xe9\xe4 \xe9\xf4\xe4."},
	{"windows-1256", "هذه جملة باللغة العربية. الطقس جميل اليوم، هيا نتمشى. تقول الصحيفة إن الغد سيكون مشمسا أيضا.", "\xe5\xd0\xe5 \xcc\xe3\xe1\xc9 \xc8\xc7\xe1\xe1\xdb\xc9 \xc7\xe1\xda\xd1\xc8\xed\xc9. \xc7\xe1\xd8\xde\xd3 \xcc\xe3\xed\xe1 \xc7\xe1\xed\xe6\xe3\xa1 \xe5\xed\xc7 \xe4\xca\xe3\xd4\xec. \xca\xde\xe6\xe1 \xc7\xe1\xd5\xcd\xed\xdd\xc9 \xc5\xe4 \xc7\xe1\xdb\xcf \xd3\xed\xdf\xe6\xe4 \xe3\xd4\xe3\xd3\xc7 \xc3\xed\xd6\xc7."},
	{"windows-1257", "Įlinkdama fechtuotojo špaga sublykčiojusi pragręžė apvalų arbūzą.", "\xc1linkdama fechtuotojo \xf0paga sublyk\xe8iojusi pragr\xe6\xfe\xeb apval\xf8 arb\xfbz\xe0."},
	{"windows-874", "นี่คือประโยคภาษาไทย วันนี้อากาศดี ไปเดินเล่นกันเถอะ", "\xb9\xd5\xe8\xa4\xd7\xcd\xbb\xc3\xd0\xe2\xc2\xa4\xc0\xd2\xc9\xd2\xe4\xb7\xc2 \xc7\xd1\xb9\xb9\xd5\xe9\xcd\xd2\xa1\xd2\xc8\xb4\xd5 \xe4\xbb\xe0\xb4\xd4\xb9\xe0\xc5\xe8\xb9\xa1\xd1\xb9\xe0\xb6\xcd\xd0"},
	{"iso-8859-1", "Voilà une phrase française où déçoit garçon, un café crème à Noël.", "Voil\xe0 une phrase fran\xe7aise o\xf9 d\xe9\xe7oit gar\xe7on, un caf\xe9 cr\xe8me \xe0 No\xebl."},
	{"iso-8859-2", "Příliš žluťoučký kůň úpěl ďábelské ódy. Dnes je hezké počasí.", "P\xf8\xedli\xb9 \xbelu\xbbou\xe8k\xfd k\xf9\xf2 \xfap\xecl \xef\xe1belsk\xe9 \xf3dy. Dnes je hezk\xe9 po\xe8as\xed."},
	{"iso-8859-3", "Ġurġ ħa l-żewġ ċwievet", "\xd5ur\xf5 \xb1a l-\xbfew\xf5 \xe5wievet"},
	{"iso-8859-4", "Glāžšķūņa rūķīši dzērumā čiepj Baha koncertflīģeļu vākus. Šodien ir jauks laiks.", "Gl\xe0\xbe\xb9\xf3\xfe\xf1a r\xfe\xf3\xef\xb9i dz\xbarum\xe0 \xe8iepj Baha koncertfl\xef\xbbe\xb6u v\xe0kus. \xa9odien ir jauks laiks."},
	{"iso-8859-5", "Это предложение на русском языке. Сегодня хорошая погода, пойдём гулять. Газета пишет, что завтра тоже будет солнечно.", "\xcd\xe2\xde \xdf\xe0\xd5\xd4\xdb\xde\xd6\xd5\xdd\xd8\xd5 \xdd\xd0 \xe0\xe3\xe1\xe1\xda\xde\xdc \xef\xd7\xeb\xda\xd5. \xc1\xd5\xd3\xde\xd4\xdd\xef \xe5\xde\xe0\xde\xe8\xd0\xef \xdf\xde\xd3\xde\xd4\xd0, \xdf\xde\xd9\xd4\xf1\xdc \xd3\xe3\xdb\xef\xe2\xec. \xb3\xd0\xd7\xd5\xe2\xd0 \xdf\xd8\xe8\xd5\xe2, \xe7\xe2\xde \xd7\xd0\xd2\xe2\xe0\xd0 \xe2\xde\xd6\xd5 \xd1\xe3\xd4\xd5\xe2 \xe1\xde\xdb\xdd\xd5\xe7\xdd\xde."},
	{"iso-8859-6", "هذه جملة باللغة العربية. الطقس جميل اليوم، هيا نتمشى. تقول الصحيفة إن الغد سيكون مشمسا أيضا.", "\xe7\xd0\xe7 \xcc\xe5\xe4\xc9 \xc8\xc7\xe4\xe4\xda\xc9 \xc7\xe4\xd9\xd1\xc8\xea\xc9. \xc7\xe4\xd7\xe2\xd3 \xcc\xe5\xea\xe4 \xc7\xe4\xea\xe8\xe5\xac \xe7\xea\xc7 \xe6\xca\xe5\xd4\xe9. \xca\xe2\xe8\xe4 \xc7\xe4\xd5\xcd\xea\xe1\xc9 \xc5\xe6 \xc7\xe4\xda\xcf \xd3\xea\xe3\xe8\xe6 \xe5\xd4\xe5\xd3\xc7 \xc3\xea\xd6\xc7."},
	{"iso-8859-7", "Αυτή είναι μια ελληνική πρόταση. Σήμερα ο καιρός είναι καλός, πάμε μια βόλτα. Ο Δίας μένει στον Όλυμπο.", "\xc1\xf5\xf4\xde \xe5\xdf\xed\xe1\xe9 \xec\xe9\xe1 \xe5\xeb\xeb\xe7\xed\xe9\xea\xde \xf0\xf1\xfc\xf4\xe1\xf3\xe7. \xd3\xde\xec\xe5\xf1\xe1 \xef \xea\xe1\xe9\xf1\xfc\xf2 \xe5\xdf\xed\xe1\xe9 \xea\xe1\xeb\xfc\xf2, \xf0\xdc\xec\xe5 \xec\xe9\xe1 \xe2\xfc\xeb\xf4\xe1. \xcf \xc4\xdf\xe1\xf2 \xec\xdd\xed\xe5\xe9 \xf3\xf4\xef\xed \xbc\xeb\xf5\xec\xf0\xef."},
	{"iso-8859-8", "זהו משפט בעברית. היום מזג האוויר טוב, בואו נלך לטייל. העיתון כותב שגם מחר יהיה יפה.", "\xe6\xe4\xe5 \xee\xf9\xf4\xe8 \xe1\xf2\xe1\xf8\xe9\xfa. \xe4\xe9\xe5\xed \xee\xe6\xe2 \xe4\xe0\xe5\xe5\xe9\xf8 \xe8\xe5\xe1, \xe1\xe5\xe0\xe5 \xf0\xec\xea \xec\xe8\xe9\xe9\xec. \xe4\xf2\xe9\xfa\xe5\xef \xeb\xe5\xfa\xe1 \xf9\xe2\xed \xee\xe7\xf8 \xe9\xe4\xe9\xe4 \xe9\xf4\xe4."},
	{"iso-8859-8-i", "זהו משפט בעברית. היום מזג האוויר טוב, בואו נלך לטייל. העיתון כותב שגם מחר יהיה יפה.", "\xe6\xe4\xe5 \xee\xf9\xf4\xe8 \xe1\xf2\xe1\xf8\xe9\xfa. \xe4\xe9\xe5\xed \xee\xe6\xe2 \xe4\xe0\xe5\xe5\xe9\xf8 \xe8\xe5\xe1, \xe1\xe5\xe0\xe5 \xf0\xec\xea \xec\xe8\xe9\xe9\xec. \xe4\xf2\xe9\xfa\xe5\xef \xeb\xe5\xfa\xe1 \xf9\xe2\xed \xee\xe7\xf8 \xe9\xe4\xe9\xe4 \xe9\xf4\xe4."},
	{"iso-8859-9", "Bu Türkçe bir cümledir. Bugün hava çok güzel, İstanbul ışıl ışıl, yürüyüşe çıkalım.", "Bu T\xfcrk\xe7e bir c\xfcmledir. Bug\xfcn hava \xe7ok g\xfczel, \xddstanbul \xfd\xfe\xfdl \xfd\xfe\xfdl, y\xfcr\xfcy\xfc\xfee \xe7\xfdkal\xfdm."},
	{"iso-8859-10", "Įlinkdama fechtuotojo špaga sublykčiojusi pragręžė apvalų arbūzą.", "\xc7linkdama fechtuotojo \xbapaga sublyk\xe8iojusi pragr\xea\xbc\xec apval\xf9 arb\xbez\xb1."},
	{"iso-8859-11", "นี่คือประโยคภาษาไทย วันนี้อากาศดี ไปเดินเล่นกันเถอะ", "\xb9\xd5\xe8\xa4\xd7\xcd\xbb\xc3\xd0\xe2\xc2\xa4\xc0\xd2\xc9\xd2\xe4\xb7\xc2 \xc7\xd1\xb9\xb9\xd5\xe9\xcd\xd2\xa1\xd2\xc8\xb4\xd5 \xe4\xbb\xe0\xb4\xd4\xb9\xe0\xc5\xe8\xb9\xa1\xd1\xb9\xe0\xb6\xcd\xd0"},
	{"iso-8859-13", "Įlinkdama fechtuotojo špaga sublykčiojusi pragręžė apvalų arbūzą.", "\xc1linkdama fechtuotojo \xf0paga sublyk\xe8iojusi pragr\xe6\xfe\xeb apval\xf8 arb\xfbz\xe0."},
	{"iso-8859-14", "Ċuir ḃuille faoi ṁaor", "\xa4uir \xa2uille faoi \xb5aor"},
	{"iso-8859-15", "Voilà une phrase française, où l'été déçoit ; garçon, un café crème à 12 € s'il vous plaît.", "Voil\xe0 une phrase fran\xe7aise, o\xf9 l'\xe9t\xe9 d\xe9\xe7oit ; gar\xe7on, un caf\xe9 cr\xe8me \xe0 12 \xa4 s'il vous pla\xeet."},
	{"iso-8859-16", "Vulpea șade pe țărm", "Vulpea \xbaade pe \xfe\xe3rm"},
	{"koi8-r", "Это предложение на русском языке. Сегодня хорошая погода, пойдём гулять. Газета пишет, что завтра тоже будет солнечно.", "\xfc\xd4\xcf \xd0\xd2\xc5\xc4\xcc\xcf\xd6\xc5\xce\xc9\xc5 \xce\xc1 \xd2\xd5\xd3\xd3\xcb\xcf\xcd \xd1\xda\xd9\xcb\xc5. \xf3\xc5\xc7\xcf\xc4\xce\xd1 \xc8\xcf\xd2\xcf\xdb\xc1\xd1 \xd0\xcf\xc7\xcf\xc4\xc1, \xd0\xcf\xca\xc4\xa3\xcd \xc7\xd5\xcc\xd1\xd4\xd8. \xe7\xc1\xda\xc5\xd4\xc1 \xd0\xc9\xdb\xc5\xd4, \xde\xd4\xcf \xda\xc1\xd7\xd4\xd2\xc1 \xd4\xcf\xd6\xc5 \xc2\xd5\xc4\xc5\xd4 \xd3\xcf\xcc\xce\xc5\xde\xce\xcf."},
	{"koi8-u", "Це речення українською мовою. Сьогодні гарна погода, ходімо гуляти. Її їжак з Києва.", "\xe3\xc5 \xd2\xc5\xde\xc5\xce\xce\xd1 \xd5\xcb\xd2\xc1\xa7\xce\xd3\xd8\xcb\xcf\xc0 \xcd\xcf\xd7\xcf\xc0. \xf3\xd8\xcf\xc7\xcf\xc4\xce\xa6 \xc7\xc1\xd2\xce\xc1 \xd0\xcf\xc7\xcf\xc4\xc1, \xc8\xcf\xc4\xa6\xcd\xcf \xc7\xd5\xcc\xd1\xd4\xc9. \xb7\xa7 \xa7\xd6\xc1\xcb \xda \xeb\xc9\xa4\xd7\xc1."},
	{"macintosh", "El niño comió piñas y bebió agua. ¿Qué pasó mañana? ¡Adiós!", "El ni\x96o comi\x97 pi\x96as y bebi\x97 agua. \xc0Qu\x8e pas\x97 ma\x96ana? \xc1Adi\x97s!"},
	{"x-mac-cyrillic", "Это предложение на русском языке. Сегодня хорошая погода, пойдём гулять. Газета пишет, что завтра тоже будет солнечно.", "\x9d\xf2\xee \xef\xf0\xe5\xe4\xeb\xee\xe6\xe5\xed\xe8\xe5 \xed\xe0 \xf0\xf3\xf1\xf1\xea\xee\xec \xdf\xe7\xfb\xea\xe5. \x91\xe5\xe3\xee\xe4\xed\xdf \xf5\xee\xf0\xee\xf8\xe0\xdf \xef\xee\xe3\xee\xe4\xe0, \xef\xee\xe9\xe4\xde\xec \xe3\xf3\xeb\xdf\xf2\xfc. \x83\xe0\xe7\xe5\xf2\xe0 \xef\xe8\xf8\xe5\xf2, \xf7\xf2\xee \xe7\xe0\xe2\xf2\xf0\xe0 \xf2\xee\xe6\xe5 \xe1\xf3\xe4\xe5\xf2 \xf1\xee\xeb\xed\xe5\xf7\xed\xee."},
	{"ibm866", "Это предложение на русском языке. Сегодня хорошая погода, пойдём гулять. Газета пишет, что завтра тоже будет солнечно.", "\x9d\xe2\xae \xaf\xe0\xa5\xa4\xab\xae\xa6\xa5\xad\xa8\xa5 \xad\xa0 \xe0\xe3\xe1\xe1\xaa\xae\xac \xef\xa7\xeb\xaa\xa5. \x91\xa5\xa3\xae\xa4\xad\xef \xe5\xae\xe0\xae\xe8\xa0\xef \xaf\xae\xa3\xae\xa4\xa0, \xaf\xae\xa9\xa4\xf1\xac \xa3\xe3\xab\xef\xe2\xec. \x83\xa0\xa7\xa5\xe2\xa0 \xaf\xa8\xe8\xa5\xe2, \xe7\xe2\xae \xa7\xa0\xa2\xe2\xe0\xa0 \xe2\xae\xa6\xa5 \xa1\xe3\xa4\xa5\xe2 \xe1\xae\xab\xad\xa5\xe7\xad\xae."},
	{"utf-16le", "これは日本語の文章です。天気がよいので散歩に行きましょう。新聞によると、カタカナも読めます。東京では明日も晴れるでしょう。", "S0\x8c0o0\xe5e,g\x9e\x8an0\x87e\xe0zg0Y0\x020)Y\x17lL0\x880D0n0g0ceikk0L\x88M0~0W0\x870F0\x020\xb0e^\x80k0\x880\x8b0h0\x010\xab0\xbf0\xab0\xca0\x820\xad\x8a\x810~0Y0\x020qg\xacNg0o0\x0ef\xe5e\x820tf\x8c0\x8b0g0W0\x870F0\x020"},
	{"utf-16be", "Übergrößenträger müssen ihre Füße schützen, äußerst schöne Straße.", "\x00\xdc\x00b\x00e\x00r\x00g\x00r\x00\xf6\x00\xdf\x00e\x00n\x00t\x00r\x00\xe4\x00g\x00e\x00r\x00 \x00m\x00\xfc\x00s\x00s\x00e\x00n\x00 \x00i\x00h\x00r\x00e\x00 \x00F\x00\xfc\x00\xdf\x00e\x00 \x00s\x00c\x00h\x00\xfc\x00t\x00z\x00e\x00n\x00,\x00 \x00\xe4\x00u\x00\xdf\x00e\x00r\x00s\x00t\x00 \x00s\x00c\x00h\x00\xf6\x00n\x00e\x00 \x00S\x00t\x00r\x00a\x00\xdf\x00e\x00."},
	{"utf-8", "これは日本語の文章です。天気がよいので散歩に行きましょう。新聞によると、カタカナも読めます。東京では明日も晴れるでしょう。", "\xe3\x81\x93\xe3\x82\x8c\xe3\x81\xaf\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe3\x81\xae\xe6\x96\x87\xe7\xab\xa0\xe3\x81\xa7\xe3\x81\x99\xe3\x80\x82\xe5\xa4\xa9\xe6\xb0\x97\xe3\x81\x8c\xe3\x82\x88\xe3\x81\x84\xe3\x81\xae\xe3\x81\xa7\xe6\x95\xa3\xe6\xad\xa9\xe3\x81\xab\xe8\xa1\x8c\xe3\x81\x8d\xe3\x81\xbe\xe3\x81\x97\xe3\x82\x87\xe3\x81\x86\xe3\x80\x82\xe6\x96\xb0\xe8\x81\x9e\xe3\x81\xab\xe3\x82\x88\xe3\x82\x8b\xe3\x81\xa8\xe3\x80\x81\xe3\x82\xab\xe3\x82\xbf\xe3\x82\xab\xe3\x83\x8a\xe3\x82\x82\xe8\xaa\xad\xe3\x82\x81\xe3\x81\xbe\xe3\x81\x99\xe3\x80\x82\xe6\x9d\xb1\xe4\xba\xac\xe3\x81\xa7\xe3\x81\xaf\xe6\x98\x8e\xe6\x97\xa5\xe3\x82\x82\xe6\x99\xb4\xe3\x82\x8c\xe3\x82\x8b\xe3\x81\xa7\xe3\x81\x97\xe3\x82\x87\xe3\x81\x86\xe3\x80\x82"},
	{"us-ascii", "Übergrößenträger müssen ihre Füße schützen, äußerst schöne Straße.", "\xdcbergr\xf6\xdfentr\xe4ger m\xfcssen ihre F\xfc\xdfe sch\xfctzen, \xe4u\xdferst sch\xf6ne Stra\xdfe."},
}
