package wasm

import (
	"bytes"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/test/wasmtest"
)

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
