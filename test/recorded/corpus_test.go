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

	"github.com/klauspost/compress/zstd"
)

// corpus returns the folder of recorded pages, or skips the test.
func corpus(t *testing.T) string {
	dir := os.Getenv("VOKTER_CORPUS")
	if dir == "" {
		t.Skip("VOKTER_CORPUS is not set: it names a folder of recorded pages, see docs/recorded-pages.md")
	}
	return dir
}

// recording is one page through time, oldest first.
type recording struct {
	name   string
	bodies [][]byte
}

// names lists the recorded pages.
func names(t *testing.T, dir string) []string {
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

// load reads limit versions of a page, every stride-th from the first.
func load(t *testing.T, dir, name string, limit, stride int) recording {
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

// serve serves recordings; every GET of a page moves it one version on. It counts GETs.
func serve(t *testing.T, rs []recording) (url string, gets func(name string) int) {
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

// oneOrMany is a JSON string or a list of them.
type oneOrMany []string

func (o *oneOrMany) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		*o = oneOrMany{s}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(o))
}

// declarations reads which part of each page its curators chose, from the folder
// beside the corpus whose name ends in "-declarations". Pages without any are watched
// whole.
func declarations(t *testing.T, dir string) map[string]declared {
	paths, err := filepath.Glob(strings.TrimSuffix(dir, "/") + "-declarations/*.json")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]declared{}
	for _, p := range paths {
		if strings.HasSuffix(p, ".history.json") {
			continue
		}
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		var file struct {
			Terms map[string]struct {
				Select json.RawMessage `json:"select"`
				Remove oneOrMany       `json:"remove"`
			} `json:"terms"`
		}
		if err := json.Unmarshal(b, &file); err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		service := strings.TrimSuffix(filepath.Base(p), ".json")
		for terms, x := range file.Terms {
			d := declared{removed: x.Remove}
			var span struct{ StartBefore, EndBefore string }
			var many oneOrMany
			switch {
			case json.Unmarshal(x.Select, &many) == nil:
				d.selectors = many
			case json.Unmarshal(x.Select, &span) == nil && span.StartBefore != "":
				d.from, d.to = span.StartBefore, span.EndBefore
			default:
				t.Fatalf("%s: %s: unknown select %s", p, terms, x.Select)
			}
			all[fmt.Sprintf("%s-%s", service, strings.ToLower(strings.ReplaceAll(terms, " ", "-")))] = d
		}
	}
	return all
}
