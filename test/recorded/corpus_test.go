package recorded

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

// corpusDir returns the folder of recorded pages, or skips the test.
func corpusDir(t *testing.T) string {
	dir := os.Getenv("VOKTER_CORPUS")
	if dir == "" {
		t.Skip("VOKTER_CORPUS is not set: it names a folder of recorded pages, see docs/internals/recorded-pages.md")
	}
	return dir
}

// recording is one page through time, oldest first.
type recording struct {
	name   string
	bodies [][]byte
}

// pageNames lists the recorded pages.
func pageNames(t *testing.T, dir string) []string {
	paths, err := filepath.Glob(filepath.Join(dir, "*.tar.zst"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no NAME.tar.zst in %s", dir)
	}
	var ns []string
	for _, p := range paths {
		ns = append(ns, strings.TrimSuffix(filepath.Base(p), ".tar.zst"))
	}
	return ns
}

// loadRecording reads limit versions of a page, every stride-th from the first.
func loadRecording(t *testing.T, dir, name string, limit, stride int) recording {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, name+".tar.zst"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f, zstd.WithDecoderMaxWindow(1<<27))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	r := recording{name: name}
	tr := tar.NewReader(z)
	for n := 0; len(r.bodies) < limit; n++ {
		if _, err := tr.Next(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if n%stride != 0 {
			continue
		}
		body, err := io.ReadAll(tr)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r.bodies = append(r.bodies, body)
	}
	return r
}

// serveRecordings serves recordings. Every GET of a page gets its next version. gets counts the GETs.
func serveRecordings(t *testing.T, rs []recording) (url string, gets func(name string) int) {
	var mu sync.Mutex
	at := map[string]int{}
	mux := http.NewServeMux()
	for _, r := range rs {
		mux.HandleFunc("GET /"+r.name, func(w http.ResponseWriter, _ *http.Request) {
			mu.Lock()
			body := r.bodies[min(at[r.name], len(r.bodies)-1)]
			at[r.name]++
			mu.Unlock()
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Write(body)
		})
	}
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL, func(name string) int {
		mu.Lock()
		defer mu.Unlock()
		return at[name]
	}
}

// stringOrList is a JSON string or a list of them.
type stringOrList []string

func (o *stringOrList) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		*o = stringOrList{s}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(o))
}

// declarations reads which part of each page its curators choose now, from the folder beside the
// corpus whose name ends in "-declarations". Pages without any are watched whole.
func declarations(t *testing.T, dir string) map[string]declaration {
	all := map[string]declaration{}
	for name, chosen := range declarationHistories(t, dir) {
		all[name] = chosen[len(chosen)-1]
	}
	return all
}

// declarationHistories reads which parts of each page its curators chose one after the other.
func declarationHistories(t *testing.T, dir string) map[string][]declaration {
	paths, err := filepath.Glob(strings.TrimSuffix(dir, "/") + "-declarations/*.json")
	if err != nil {
		t.Fatal(err)
	}
	type choice struct {
		Select     json.RawMessage `json:"select"`
		Remove     stringOrList    `json:"remove"`
		ValidUntil time.Time       `json:"validUntil"`
	}
	read := func(path string, into any) {
		b, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(b, into)
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	all := map[string][]declaration{}
	for _, p := range paths {
		service, ok := strings.CutSuffix(p, ".json")
		if !ok || strings.HasSuffix(service, ".history") {
			continue
		}
		var now struct {
			Terms map[string]choice `json:"terms"`
		}
		read(p, &now)
		before := map[string][]choice{}
		if past := service + ".history.json"; fileExists(past) {
			read(past, &before)
		}
		for terms, x := range now.Terms {
			name := fmt.Sprintf("%s-%s", filepath.Base(service), strings.ToLower(strings.ReplaceAll(terms, " ", "-")))
			for _, x := range append(before[terms], x) {
				d := declaration{removed: x.Remove, until: x.ValidUntil}
				var span struct{ StartBefore, EndBefore string }
				var many stringOrList
				switch {
				case json.Unmarshal(x.Select, &many) == nil:
					d.selectors = many
				case json.Unmarshal(x.Select, &span) == nil && span.StartBefore != "":
					d.from, d.to = span.StartBefore, span.EndBefore
				default:
					t.Fatalf("%s: %s: unknown select %s", p, terms, x.Select)
				}
				all[name] = append(all[name], d)
			}
		}
	}
	return all
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
