package pdf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pipelinetest"
)

// newPDF makes a PDF of one page with lines of text.
func newPDF(lines ...string) []byte {
	var content strings.Builder
	content.WriteString("BT /F1 12 Tf 72 720 Td 14 TL\n")
	for _, l := range lines {
		fmt.Fprintf(&content, "(%s) Tj T*\n", l)
	}
	content.WriteString("ET")
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n")
	var offsets []int
	for i, o := range []string{
		"<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 4 0 R>>>>/Contents 5 0 R>>",
		"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
		fmt.Sprintf("<</Length %d>>\nstream\n%s\nendstream", content.Len(), content.String()),
	} {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, o := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", o)
	}
	fmt.Fprintf(&b, "trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, start)
	return b.Bytes()
}

func newReader(t *testing.T) Reader {
	t.Helper()
	r, err := New("pdftotext")
	if err != nil {
		t.Skip(err)
	}
	return r
}

func TestContract(t *testing.T) {
	pipelinetest.TestReader(t, newReader(t), pipelinetest.ReaderPages{
		Samples: []pipeline.Raw{{ContentType: "application/pdf", Body: newPDF("Zeus is in stock.")}},
		Broken:  []pipeline.Raw{{Body: []byte("<html>no PDF</html>")}},
		Large:   func(n int) pipeline.Raw { return pipeline.Raw{Body: newPDF(strings.Repeat("word ", n/5))} },
	})
}

func TestRead(t *testing.T) {
	r := newReader(t)
	body := newPDF("Zeus is in stock.", "Price: 12.50 EUR", "caf\xe9")
	got, err := r.Read(t.Context(), pipeline.Raw{Body: body}, pipeline.View{})
	if err != nil || got.Content != "Zeus is in stock.\nPrice: 12.50 EUR\ncafé\n" {
		t.Errorf("got %q, %v", got.Content, err)
	}
	got, err = r.Read(t.Context(), pipeline.Raw{Body: body}, pipeline.View{Select: []pipeline.Selector{{Regexp: "^Price: .*"}}})
	if err != nil || got.Content != "Price: 12.50 EUR\n" {
		t.Errorf("select: got %q, %v", got.Content, err)
	}
	_, err = r.Read(t.Context(), pipeline.Raw{Body: []byte("%PDF-1.4\nnothing")}, pipeline.View{})
	if e, ok := errors.AsType[*pipeline.FetchError](err); !ok || e.Class != pipeline.FailUnreadable || !strings.HasPrefix(e.Reason, "pdftotext cannot read the page: Syntax Error") {
		t.Errorf("a damaged page: got %v", err)
	}
}

// A program that writes without end, or says nothing, is ended.
func TestProgramIsEnded(t *testing.T) {
	script := filepath.Join(t.TempDir(), "endless")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec yes\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	r, err := New(script)
	if err != nil {
		t.Skip(err)
	}
	_, err = r.Read(t.Context(), pipeline.Raw{Body: []byte("%PDF-")}, pipeline.View{})
	if e, ok := errors.AsType[*pipeline.FetchError](err); !ok || e.Class != pipeline.FailTooLarge {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Read(ctx, pipeline.Raw{Body: []byte("%PDF-")}, pipeline.View{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestComplaint has programs fail with messages that no terminal is to get, or that have no end.
func TestComplaint(t *testing.T) {
	for script, want := range map[string]string{
		`printf '\n Syntax \033[31mError: \202 quoted\nmore\n' >&2; exit 3`: "pdftotext cannot read the page: Syntax [31mError:  quoted",
		`printf 'a%.0s' $(seq 5000) >&2; exit 1`:                            "pdftotext cannot read the page: " + strings.Repeat("a", 200),
		`exit 1`:                                                            "pdftotext cannot read the page: exit status 1",
	} {
		file := filepath.Join(t.TempDir(), "complains")
		if err := os.WriteFile(file, []byte("#!/bin/sh\ncat >/dev/null\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		r, err := New(file)
		if err != nil {
			t.Skip(err)
		}
		_, err = r.Read(t.Context(), pipeline.Raw{Body: []byte("%PDF-")}, pipeline.View{})
		if e, ok := errors.AsType[*pipeline.FetchError](err); !ok || e.Reason != want {
			t.Errorf("%s: got %v, want %s", script, err, want)
		}
	}
}

func TestNoProgram(t *testing.T) {
	if _, err := New("no-such-program"); err == nil || !strings.Contains(err.Error(), "install poppler-utils") {
		t.Errorf("got %v", err)
	}
}
