package wasm

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/test/wasmtest"
)

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
