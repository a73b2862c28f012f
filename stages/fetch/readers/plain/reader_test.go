package plain

import (
	"errors"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pipelinetest"
	"github.com/vokter/vokter/test/readertest"
)

func TestRead(t *testing.T) {
	long := strings.Repeat("abcdefghi ", 6) + "x" // 61 characters
	sixty := strings.Repeat("ä", 60)
	for _, tc := range []struct{ name, body, want string }{
		{"nothing", "", ""},
		{"lines", "a\nb\r\nc\rd", "a|b|c|d|"},
		{"wrapped", long + "\nend\nnext", long + " end|next|"},
		{"wrapped twice", long + "\n" + long + "\nend", long + " " + long + " end|"},
		{"60 characters", sixty + "\nend", sixty + " end|"},
		{"59 characters", sixty[2:] + "\nend", sixty[2:] + "|end|"},
		{"59 and spaces", sixty[2:] + "  \nend", sixty[2:] + "|end|"},
		{"60 and a blank line", sixty + "\n \nend", sixty + "|end|"},
		{"indented", "  a\n\tb   c", "a|b c|"},
		{"pages", "a\fb", "a|b|"},
		{"mark", "\ufeffa", "a|"},
		{"markdown", "# Head\n\n- one\n- two", "# Head|- one|- two|"},
	} {
		got, err := New().Read(t.Context(), pipeline.Raw{Body: []byte(tc.body)}, pipeline.View{})
		if s := strings.ReplaceAll(got.Content, "\n", "|"); err != nil || s != tc.want {
			t.Errorf("%s: got %q, %v, want %q", tc.name, s, err, tc.want)
		}
	}
}

func TestViews(t *testing.T) {
	const log = "start\nstatus: open\ndetail one\ndetail two\nend of it\nstatus: closed\n"
	readertest.Views(t, New(), pipeline.Raw{Body: []byte(log)}, map[[2]string]string{
		{"lines:2-3", ""}:            "status: open|detail one|",
		{"lines: 5-", ""}:            "end of it|status: closed|",
		{"lines:-1", ""}:             "start|",
		{"lines:6", ""}:              "status: closed|",
		{"re:^status: .*", ""}:       "status: open|status: closed|",
		{`re:\b(open|closed)\b`, ""}: "open|closed|",
		{"", "re:^detail .*"}:        "start|status: open|end of it|status: closed|",
		{"", "re:t[aw][a-z]*"}:       "s|s : open|de one|de|end of it|s : closed|",
		{"lines:2-5", "lines:3-4"}:   "status: open|end of it|",
		{"re:^status.*", "re:open"}:  "status:|status: closed|",
	})
	view := pipeline.View{Select: []pipeline.Selector{{From: "re:^status: open", To: "re:^end"}}}
	got, err := New().Read(t.Context(), pipeline.Raw{Body: []byte(log)}, view)
	if err != nil || got.Content != "status: open\ndetail one\ndetail two\n" {
		t.Errorf("a range: got %q, %v", got.Content, err)
	}
}

func TestReadFails(t *testing.T) {
	_, err := New().Read(t.Context(), pipeline.Raw{Body: []byte("a")}, pipeline.View{Select: []pipeline.Selector{{CSS: "p"}}})
	if e, ok := errors.AsType[*pipeline.FetchError](err); !ok || e.Class != pipeline.FailSelectorGone {
		t.Errorf("select: got %v", err)
	}
	_, err = New().Read(t.Context(), pipeline.Raw{Body: []byte(strings.Repeat("a\n", pipeline.MaxText))}, pipeline.View{})
	if e, ok := errors.AsType[*pipeline.FetchError](err); !ok || e.Class != pipeline.FailTooLarge {
		t.Errorf("large: got %v", err)
	}
}

func TestContract(t *testing.T) {
	pipelinetest.TestReader(t, New(), pipelinetest.ReaderPages{
		Samples: []pipeline.Raw{{Body: []byte("a\nb"), ContentLanguage: "sv"}},
		Golden:  "testdata", Types: map[string]string{".txt": "text/plain"},
		Large: func(n int) pipeline.Raw { return pipeline.Raw{Body: []byte(strings.Repeat("\n", n))} },
	})
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("a\nb\r\n\xff\x02"), "en")
	f.Fuzz(func(t *testing.T, body []byte, language string) {
		pipelinetest.CheckReader(t, New(), pipeline.Raw{Body: body, ContentLanguage: language}, pipeline.View{})
	})
}
