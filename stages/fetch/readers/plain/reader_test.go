package plain

import (
	"errors"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pipelinetest"
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
	pipelinetest.TestReader(t, New(), pipeline.Raw{Body: []byte("a\nb"), ContentLanguage: "sv"})
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("a\nb\r\n\xff\x02"), "en")
	f.Fuzz(func(t *testing.T, body []byte, language string) {
		pipelinetest.CheckReader(t, New(), pipeline.Raw{Body: body, ContentLanguage: language}, pipeline.View{})
	})
}
