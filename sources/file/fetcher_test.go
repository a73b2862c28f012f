package filesource

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pipelinetest"
)

// writeFile writes content to the file at path, whose folder it makes, as of an hour ago.
func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	makeOld(t, path)
}

var oldTime = time.Now().Add(-time.Hour)

func makeOld(t *testing.T, path string) {
	t.Helper()
	if err := os.Chtimes(path, oldTime, oldTime); err != nil {
		t.Fatal(err)
	}
}

// fetch fetches the page of path.
func fetch(t *testing.T, f *Fetcher, path, etag string) (pipeline.Response, string, error) {
	t.Helper()
	resp, err := f.Fetch(t.Context(), pipeline.FetchRequest{URL: URL(path), ETag: etag})
	if err != nil {
		return resp, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body), nil
}

func TestFetch(t *testing.T) {
	dir := t.TempDir()
	f := New(Config{Allow: []string{dir}})
	for name, want := range map[string]string{
		"a.md": "text/markdown", "b.HTML": "text/html", "with blank & 50%?#.json": "application/json", "script.ts": "", "README": "",
	} {
		path := filepath.Join(dir, "sub", name)
		writeFile(t, path, "text of "+name)
		resp, body, err := fetch(t, f, path, "")
		if err != nil || resp.Status != 200 || body != "text of "+name || resp.Header.Get("Content-Type") != want {
			t.Errorf("%s: got %d, %q of type %q, %v", name, resp.Status, body, resp.Header.Get("Content-Type"), err)
		}
	}
}

// TestUnchanged changes a file in each way by which its time, size or number alone changes.
func TestUnchanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.txt")
	writeFile(t, path, "one")
	f := New(Config{Allow: []string{filepath.Dir(path)}})
	tag := func(etag string, want int) string {
		t.Helper()
		resp, _, err := fetch(t, f, path, etag)
		if err != nil || resp.Status != want {
			t.Fatalf("got %d, %v, want %d", resp.Status, err, want)
		}
		return resp.Header.Get("ETag")
	}
	first := tag("", 200)
	tag(first, 304)
	writeFile(t, path, "longer")
	longer := tag(first, 200)
	if err := os.Rename(path, path+".old"); err != nil { // keeps the number of the file in use
		t.Fatal(err)
	}
	writeFile(t, path, "LONGER")
	renamed := tag(longer, 200)
	tag(renamed, 304)
	if err := os.Chtimes(path, oldTime, oldTime.Add(time.Nanosecond*1000)); err != nil {
		t.Fatal(err)
	}
	tag(renamed, 200)
	now := time.Now()
	if err := os.Chtimes(path, now, now); err != nil {
		t.Fatal(err)
	}
	if got := tag("", 200); got != "" {
		t.Errorf("a file that was just written has the tag %s, which a later write may leave", got)
	}
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	docs, out := filepath.Join(dir, "docs"), filepath.Join(dir, "out")
	writeFile(t, filepath.Join(docs, "a.md"), "a")
	writeFile(t, filepath.Join(docs, "large.md"), strings.Repeat("x", 101))
	writeFile(t, filepath.Join(out, "secret"), "secret")
	writeFile(t, filepath.Join(out, "beside"), "beside")
	for name, target := range map[string]string{
		"link": "../out/secret", "absolute": filepath.Join(out, "secret"), "folder": "../out", "within": "a.md", "loop": "loop",
	} {
		if err := os.Symlink(target, filepath.Join(docs, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir) // the names of sockets must be short
	socket, err := net.Listen("unix", "docs/socket")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	f := New(Config{Allow: []string{docs, filepath.Join(out, "beside"), "/dev"}, MaxBody: 100})
	for path, want := range map[string]string{
		"docs/a.md": "", "docs/within": "", "out/beside": "", "docs": "",
		"docs/link":      pipeline.FailAddress + " leads out of the permitted folder",
		"docs/absolute":  pipeline.FailAddress + " leads out of the permitted folder",
		"docs/folder":    pipeline.FailAddress + " leads out of the permitted folder",
		"docs/folder/x":  pipeline.FailAddress + " leads out of the permitted folder",
		"docs/loop":      pipeline.FailUnreadable + " leads to itself",
		"out/secret":     pipeline.FailAddress + " in no permitted folder",
		"out":            pipeline.FailAddress + " in no permitted folder",
		"out/beside/x":   pipeline.FailMissing + " not a folder",
		"docs/gone":      pipeline.FailMissing + " does not exist",
		"docs/gone/gone": pipeline.FailMissing + " does not exist",
		"docs/a.md/x":    pipeline.FailMissing + " not a folder",
		"docs/a.md/":     pipeline.FailURL + " without the slash",
		"docs/large.md":  pipeline.FailTooLarge + " larger than 100 bytes",
		"docs/socket":    pipeline.FailType + " socket",
		"docs/fifo":      pipeline.FailType + " pipe",
		"/dev/zero":      pipeline.FailType + " device",
		"docs/../out/x":  pipeline.FailAddress + " in no permitted folder",
	} {
		if strings.HasSuffix(path, "fifo") && !makeFIFO(t, path) {
			continue
		}
		if _, err := os.Stat(path); strings.HasPrefix(path, "/dev") && err != nil {
			continue
		}
		u := "file://" + filepath.ToSlash(dir) + "/" + path
		if filepath.IsAbs(path) {
			u = URL(path)
		}
		resp, err := f.Fetch(t.Context(), pipeline.FetchRequest{URL: u})
		if err == nil {
			resp.Body.Close()
		}
		if want == "" {
			if err != nil {
				t.Errorf("%s: got %v", path, err)
			}
			continue
		}
		class, reason, _ := strings.Cut(want, " ")
		e, _ := errors.AsType[*pipeline.FetchError](err)
		if e == nil || e.Class != class || !strings.Contains(e.Reason, reason) {
			t.Errorf("%s: got %#v, want %s: %s", path, err, class, reason)
		}
	}
}

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.md", "a<b>.md", "sub/c.md", ".git/config", ".hidden", "b.md~"} {
		writeFile(t, filepath.Join(dir, name), name)
	}
	if err := os.Symlink("b.md", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	f := New(Config{Allow: []string{dir}})
	resp, body, err := fetch(t, f, dir+"/", "")
	if err != nil || resp.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("got %v, %v", resp.Header, err)
	}
	want := "<!doctype html><meta charset=utf-8><title>Files in " + dir + "</title><ul>\n"
	for _, name := range []string{"a%3Cb%3E.md|a&lt;b&gt;.md", "b.md|b.md", "link|link", "sub/c.md|sub/c.md"} {
		link, shown, _ := strings.Cut(name, "|")
		want += `<li><a href="file://` + dir + "/" + link + `">` + shown + "</a>\n"
	}
	if want += "</ul>\n"; body != want {
		t.Errorf("got:\n%swant:\n%s", body, want)
	}
}

func TestCheck(t *testing.T) {
	allow := []string{"/srv/docs", "/etc/motd"}
	for raw, want := range map[string]string{
		"file:///srv/docs/a.md": "", "file:///srv/docs/": "", "file:///srv/docs": "", "file://LOCALHOST/etc/motd": "",
		"file:///srv/docs2/a.md":     "allow: {files: [/srv/docs2]}",
		"file:///srv/docs/../x":      "allow: {files: [/srv]}",
		"file:///etc/motd.d/":        "allow: {files: [/etc/motd.d]}",
		"file:///":                   "allow: {files: [/]}",
		"file://srv/docs/a.md":       "three slashes in all, file:///srv/docs/a.md",
		"file:///srv/docs/a?b":       "%3F",
		"file:///srv/docs/a%00":      "no absolute path",
		"file:srv/docs":              "no absolute path",
		"https://example.com/a":      "not a file URL",
		"file:///srv/docs/%2e%2e/xy": "allow: {files: [/srv]}",
	} {
		err := Check(raw, allow)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", raw, err, want)
		}
	}
	for path, ok := range map[string]bool{"/srv": true, "/": true, "": false, "srv": false, "file:///srv": false} {
		if err := CheckAllow(path); (err == nil) != ok {
			t.Errorf("CheckAllow(%q) = %v", path, err)
		}
	}
	if got := permittedEntries("/srv/docs/a", []string{"/srv/docs/", "/", "/srv"}); !slices.Equal(got, []string{"/", "/srv", "/srv/docs"}) {
		t.Errorf("got %v, want the widest first", got)
	}
}

func TestFetcherContract(t *testing.T) {
	pipelinetest.TestFetcher(t, func(t *testing.T) pipelinetest.FetcherSite {
		dir, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "page.txt")
		return pipelinetest.FetcherSite{
			Fetcher: New(Config{Allow: []string{dir}, MaxBody: 1000}), MaxBody: 1000, Missing: "file://" + dir + "/missing.txt",
			Put: func(t *testing.T, body string) string {
				writeFile(t, path, body)
				return "file://" + path
			},
		}
	})
}
