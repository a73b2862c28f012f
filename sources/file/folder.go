package filesource

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/vokter/vokter/pipeline"
)

// maxEntries is how many files and folders the listing of a folder may look at.
const maxEntries = 50_000

// listFolder answers r with an HTML page that links to all files in the folder name of root, and in the
// folders below it, in the order of their names. Hidden files, backup copies that editors leave
// (name~), and what is no regular file are left out.
func (f *Fetcher) listFolder(r pipeline.FetchRequest, root *os.Root, folder, name string) (pipeline.Response, error) {
	var page bytes.Buffer
	fmt.Fprintf(&page, "<!doctype html><meta charset=utf-8><title>%s</title><ul>\n", html.EscapeString("Files in "+folder))
	places := watchedNames(folder)
	entries := 0
	err := fs.WalkDir(root.FS(), filepath.ToSlash(name), func(p string, entry fs.DirEntry, err error) error {
		if err != nil && p == filepath.ToSlash(name) {
			return err
		}
		if entries++; entries > maxEntries {
			return &pipeline.FetchError{Class: pipeline.FailTooLarge, Reason: fmt.Sprintf("the folder holds more than %d files and folders; watch folders below it", maxEntries)}
		}
		rel, relErr := filepath.Rel(name, filepath.FromSlash(p))
		switch {
		case err != nil || relErr != nil: // it went meanwhile, or may not be read
			return nil
		case rel != "." && isLeftOut(entry.Name()):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			places = append(places, watchedName{filepath.Join(folder, rel), listingNames})
			return nil
		case !entry.Type().IsRegular():
			if info, err := root.Stat(filepath.FromSlash(p)); err != nil || !info.Mode().IsRegular() {
				return nil
			}
		}
		fmt.Fprintf(&page, "<li><a href=\"%s\">%s</a>\n", html.EscapeString(URL(filepath.Join(folder, rel))), html.EscapeString(filepath.ToSlash(rel)))
		return nil
	})
	f.watches.set(r.URL, places)
	if fe, ok := err.(*pipeline.FetchError); ok { //nolint:errorlint // WalkDir returns it as it is
		return pipeline.Response{}, fe
	}
	if err != nil {
		return pipeline.Response{}, fetchError(folder, err)
	}
	page.WriteString("</ul>\n")
	header := http.Header{"Content-Type": {"text/html; charset=utf-8"}}
	return pipeline.Response{URL: r.URL, Status: http.StatusOK, Header: header, Body: io.NopCloser(&page)}, nil
}

// isLeftOut reports whether a folder's listing leaves out the file or folder name.
func isLeftOut(name string) bool {
	return strings.HasPrefix(path.Base(name), ".") || strings.HasSuffix(name, "~")
}
