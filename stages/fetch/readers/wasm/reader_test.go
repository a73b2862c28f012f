package wasm

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pipelinetest"
	"github.com/vokter/vokter/test/wasmtest"
)

// newReader returns a Reader of module for application/x.
func newReader(t *testing.T, module []byte, c Config) *Reader {
	t.Helper()
	c.Name, c.Module = "x.wasm", module
	if c.Types == nil {
		c.Types = []string{"application/x"}
	}
	r, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var page = pipeline.Raw{URL: "https://example.com/", ContentType: "application/x", ContentLanguage: "nl", Body: []byte("one\ntwo")}

// TestContract: a module keeps the contract of readers, whatever page it gets.
func TestContract(t *testing.T) {
	pipelinetest.TestReader(t, newReader(t, wasmtest.Program(wasmtest.Copy(), ""), Config{}), pipelinetest.ReaderPages{
		Samples: []pipeline.Raw{page},
		Large:   func(n int) pipeline.Raw { return pipeline.Raw{Body: []byte(strings.Repeat("x", n))} },
	})
}

func TestText(t *testing.T) {
	for name, tc := range map[string]struct {
		writes string
		view   pipeline.View
		want   pipeline.Text
	}{
		"lines": {"one \r\n\n  two\tthree\x02\x00\n", pipeline.View{}, pipeline.Text{Content: "one\ntwo three\n", Language: "nl"}},
		"JSON": {`{"title": "A  title", "language": "de-CH", "blocks": ["one", ["a", ["b", "c"]], [], "", "two\nthree"]}`, pipeline.View{},
			pipeline.Text{Content: "A title\none\n\x02a\n\x02b\nc\n\x03\x03two three\n", Title: "A title", Language: "de-CH"}},
		"keys": {`{"blocks": ["one", [{"key": "a"}, "two", "three"], ["four"], [{"key": "b"}]]}`, pipeline.View{},
			pipeline.Text{Content: "one\n\x02two\nthree\n\x03\x02four\n\x03", Keys: []pipeline.Key{pipeline.NewKey("", "a"), 0}, Language: "nl"}},
		"no blocks":  {`{}`, pipeline.View{}, pipeline.Text{Language: "nl"}},
		"a brace":    {"\n{x}", pipeline.View{}, pipeline.Text{Content: "{x}\n", Language: "nl"}},
		"selected":   {`{"title": "A title", "blocks": ["one", "two", ["three"]]}`, pipeline.View{Select: []pipeline.Selector{{Lines: "2-"}}}, pipeline.Text{Content: "two\n\x02three\n\x03", Title: "A title", Language: "nl"}},
		"removed":    {"at 12:01\nprice 5", pipeline.View{Remove: []pipeline.Selector{{Regexp: `\d+:\d+`}}}, pipeline.Text{Content: "at\nprice 5\n", Language: "nl"}},
		"no tag":     {`{"language": "klingon language", "blocks": ["x"]}`, pipeline.View{}, pipeline.Text{Content: "x\n", Language: "nl"}},
		"an escape":  {`{"blocks": ["a\u0002b\u00e9"]}`, pipeline.View{}, pipeline.Text{Content: "abé\n", Language: "nl"}},
		"surrogates": {`{"blocks": ["\ud800"]}`, pipeline.View{}, pipeline.Text{Content: "\ufffd\n", Language: "nl"}},
	} {
		r := newReader(t, wasmtest.Program(wasmtest.Write(1), tc.writes), Config{})
		got, err := r.Read(t.Context(), page, tc.view)
		if err != nil || !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: got %+v, %v; want %+v", name, got, err, tc.want)
		}
		if err := pipelinetest.CheckContent(got.Content); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestModuleThatFails: whatever a module does, it fails the check of its page with a reason that
// says what it did.
func TestModuleThatFails(t *testing.T) {
	much := strings.Repeat("words and ", 100)
	for name, tc := range map[string]struct {
		code, text    string
		class, reason string
	}{
		"a trap":         {wasmtest.Unreachable, "x", pipeline.FailUnreadable, "x.wasm crashed: wasm error: unreachable"},
		"last words":     {wasmtest.Write(2) + wasmtest.Unreachable, "out of ideas\nmore", pipeline.FailUnreadable, "unreachable: out of ideas"},
		"a loop":         {wasmtest.Forever, "x", pipeline.FailUnreadable, "took longer than 200ms"},
		"recursion":      {wasmtest.Recurse, "x", pipeline.FailUnreadable, "crashed: stack overflow"},
		"memory":         {wasmtest.GrowMemory, "x", pipeline.FailUnreadable, "needs more memory than 2000000 bytes"},
		"much output":    {wasmtest.Repeat(wasmtest.Write(1)), much, pipeline.FailTooLarge, "wrote more than 8388608 bytes"},
		"much complaint": {wasmtest.Repeat(wasmtest.Write(2)), much, pipeline.FailUnreadable, "took longer than"},
		"an exit code":   {wasmtest.Exit(3), "x", pipeline.FailUnreadable, "exit code 3 and gave no reason"},
		"a reason":       {wasmtest.Write(2) + wasmtest.Exit(1), "\nline 7 is not X\nat main.c", pipeline.FailUnreadable, "x.wasm cannot read the page: line 7 is not X"},
		"no UTF-8":       {wasmtest.Write(1), "abc\xff", pipeline.FailUnreadable, "not valid UTF-8 at byte 3"},
		"JSON cut off":   {wasmtest.Write(1), `{"blocks": ["x"`, pipeline.FailUnreadable, "the JSON is cut off"},
		"no JSON":        {wasmtest.Write(1), "{x}", pipeline.FailUnreadable, "line feed before it"},
		"another member": {wasmtest.Write(1), `{"text": "x"}`, pipeline.FailUnreadable, `"blocks"`},
		"a number":       {wasmtest.Write(1), `{"blocks": [1]}`, pipeline.FailUnreadable, "list of strings"},
		"a title":        {wasmtest.Write(1), `{"title": ["x"]}`, pipeline.FailUnreadable, "title must be a string"},
		"a key outside":  {wasmtest.Write(1), `{"blocks": [{"key": "a"}]}`, pipeline.FailUnreadable, "list of strings"},
		"another object": {wasmtest.Write(1), `{"blocks": [[{"id": "a"}]]}`, pipeline.FailUnreadable, "\"key\" alone"},
		"two members":    {wasmtest.Write(1), `{"blocks": [[{"key": "a", "id": "b"}]]}`, pipeline.FailUnreadable, "\"key\" alone"},
		"more":           {wasmtest.Write(1), `{"blocks": []}{}`, pipeline.FailUnreadable, "behind the object"},
		"nested":         {wasmtest.Write(1), `{"blocks": ` + strings.Repeat("[", 200), pipeline.FailUnreadable, "more than 100 deep"},
		"a long block":   {wasmtest.Write(1), `{"blocks": ["` + strings.Repeat("x", pipeline.MaxText+1) + `"]}`, pipeline.FailTooLarge, "2 MiB"},
		"a long title":   {wasmtest.Write(1), `{"title": "` + strings.Repeat("x", pipeline.MaxText+1) + `"}`, pipeline.FailTooLarge, "2 MiB"},
	} {
		memory := int64(2_000_000)
		if len(tc.text) > pipeline.MaxText {
			memory = 0
		}
		timeout := time.Minute // the race detector makes a recursion slow
		if strings.Contains(tc.reason, "took longer") {
			timeout = 200 * time.Millisecond
		}
		r := newReader(t, wasmtest.Program(tc.code, tc.text), Config{Memory: memory, Timeout: timeout})
		text, err := r.Read(t.Context(), page, pipeline.View{})
		e, ok := errors.AsType[*pipeline.FetchError](err)
		if !ok || e.Class != tc.class || !strings.Contains(e.Reason, tc.reason) {
			t.Errorf("%s: got %.50q, %v, want %s: %s", name, text.Content, err, tc.class, tc.reason)
		}
	}
}

// TestTableCannotGrow: tables are not in the memory that is limited.
func TestTableCannotGrow(t *testing.T) {
	r := newReader(t, wasmtest.Program(wasmtest.GrowTable+wasmtest.Write(1), "it did not grow"), Config{})
	if got, err := r.Read(t.Context(), page, pipeline.View{}); err != nil || got.Content != "it did not grow\n" {
		t.Errorf("got %q, %v", got.Content, err)
	}
}

// TestReadEndsWithItsContext: the check's time counts, not that of the module alone.
func TestReadEndsWithItsContext(t *testing.T) {
	r := newReader(t, wasmtest.Program(wasmtest.Forever, "x"), Config{Timeout: MaxTimeout})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := r.Read(ctx, page, pipeline.View{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the end of the context", err)
	}
}

// TestInstancesShareNothing: a page leaves nothing for the next one, also when many are read at
// once.
func TestInstancesShareNothing(t *testing.T) {
	r := newReader(t, wasmtest.Program(wasmtest.Copy(), ""), Config{})
	t.Run("all", func(t *testing.T) {
		for range 8 {
			t.Run("one", func(t *testing.T) {
				t.Parallel()
				for _, body := range []string{"a long text of a page", "short", "x"} {
					got, err := r.Read(t.Context(), pipeline.Raw{Body: []byte(body)}, pipeline.View{})
					if err != nil || got.Content != body+"\n" {
						t.Errorf("got %q, %v, want %q", got.Content, err, body)
					}
				}
			})
		}
	})
}

func TestNewRefuses(t *testing.T) {
	good := wasmtest.Program("", "x")
	types := []string{"application/x"}
	for name, tc := range map[string]struct {
		c    Config
		want string
	}{
		"no module":       {Config{Module: []byte("<html>"), Types: types}, "wasm: it is no WebAssembly module"},
		"nothing":         {Config{Types: types}, "wasm: it is no WebAssembly module"},
		"cut off":         {Config{Module: good[:len(good)-5], Types: types}, "perhaps the file was not written to its end"},
		"cut in a table":  {Config{Module: []byte("\x00asm\x01\x00\x00\x00\x04\x01\x01"), Types: types}, "cut off"},
		"other tables":    {Config{Module: []byte("\x00asm\x01\x00\x00\x00\x04\x04\x01\x63\x00\x01"), Types: types}, "not supported"},
		"a large table":   {Config{Module: []byte("\x00asm\x01\x00\x00\x00\x04\x06\x01\x70\x00\xff\xff\x7f"), Types: types}, "more than 1,000,000 elements"},
		"nothing in it":   {Config{Module: []byte("\x00asm\x01\x00\x00\x00"), Types: types}, "exports no function _start"},
		"a library":       {Config{Module: wasmtest.Library(), Types: types}, "not as a library"},
		"other imports":   {Config{Module: bytes.ReplaceAll(good, []byte("fd_read"), []byte("fd_rxad")), Types: types}, `imports the function "fd_rxad"`},
		"other modules":   {Config{Module: bytes.ReplaceAll(good, []byte("wasi_snapshot_preview1"), []byte("wasi_snapshot_preview2")), Types: types}, "preview2"},
		"invalid code":    {Config{Module: wasmtest.Program("\x6a", "x"), Types: types}, "wasm: invalid function"},
		"a large memory":  {Config{Module: wasmtest.Large(2000), Types: types}, "begins with 131072000 bytes of memory, and memory limits it to 64000000"},
		"no types":        {Config{Module: good}, "types: is missing"},
		"a strange type":  {Config{Module: good, Types: []string{"application/x; y=z"}}, "types: \"application/x; y=z\" is no media type"},
		"upper case":      {Config{Module: good, Types: []string{"Application/X"}}, "in lower case"},
		"no slash":        {Config{Module: good, Types: []string{"docx"}}, "is no media type"},
		"twice":           {Config{Module: good, Types: []string{"a/b", "a/b"}}, "listed twice"},
		"little memory":   {Config{Module: good, Types: types, Memory: 10}, "memory: 10 bytes are not between"},
		"too much":        {Config{Module: good, Types: types, Memory: MaxMemory + 1}, "are not between"},
		"a long timeout":  {Config{Module: good, Types: types, Timeout: time.Hour}, "timeout: 1h0m0s is not between"},
		"several at once": {Config{Module: good, Timeout: -1, Memory: -1}, "types: is missing"},
	} {
		r, err := New(tc.c)
		if err == nil || r != nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %s", name, err, tc.want)
		}
	}
}

// TestModulesAreCompiledOnce, and are garbage when no Reader has them.
func TestModulesAreCompiledOnce(t *testing.T) {
	program := wasmtest.Program(wasmtest.Write(1), "a module of this test alone")
	first, second := newReader(t, program, Config{}), newReader(t, program, Config{Memory: MinMemory})
	if first.module != second.module || first.Extractor() != second.Extractor() {
		t.Error("a module was compiled twice")
	}
	other := newReader(t, wasmtest.Program(wasmtest.Write(1), "another"), Config{})
	if first.Extractor() == other.Extractor() || !strings.HasPrefix(first.Extractor(), "wasm/1/") {
		t.Errorf("two modules make text by the rules %s and %s", first.Extractor(), other.Extractor())
	}
	sum := first.module.sum
	runtime.KeepAlive(second)
	first, second = nil, nil
	runtime.GC()
	runtime.GC()
	moduleCache.Lock()
	defer moduleCache.Unlock()
	if moduleCache.bySum[sum].Value() != nil {
		t.Error("a module is held by nobody and is not garbage")
	}
}

// BenchmarkRead reads a small page, which is mostly making an instance.
func BenchmarkRead(b *testing.B) {
	r, err := New(Config{Name: "x.wasm", Module: wasmtest.Program(wasmtest.Copy(), ""), Types: []string{"application/x"}})
	if err != nil {
		b.Fatal(err)
	}
	raw := pipeline.Raw{Body: bytes.Repeat([]byte("a line of text\n"), 50)}
	b.SetBytes(int64(len(raw.Body)))
	for b.Loop() {
		if _, err := r.Read(b.Context(), raw, pipeline.View{}); err != nil {
			b.Fatal(err)
		}
	}
}
