package filesource

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/vokter/vokter/pipeline"
)

// Scheme is the URL scheme of files and folders.
const Scheme = "file"

// URL returns the file URL of the absolute path.
func URL(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // a volume of Windows, such as C:/
		path = "/" + path
	}
	return (&url.URL{Scheme: Scheme, Path: path}).String()
}

// Path returns the absolute path of the file URL raw, and whether the URL ends in a slash and so
// stands for a folder. The error is written for the user.
func Path(raw string) (path string, folder bool, err error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Scheme != Scheme:
		return "", false, fmt.Errorf("%q is not a file URL; write file:///srv/docs/page.md", raw)
	case u.Host != "" && !strings.EqualFold(u.Host, "localhost"):
		return "", false, fmt.Errorf("%q names the host %s; only files of this machine can be read: write file:// and three slashes in all, file:///%s%s", raw, u.Host, u.Host, u.Path)
	case u.RawQuery != "" || u.ForceQuery:
		return "", false, fmt.Errorf("%q has a query; write a question mark in the name of a file as %%3F", raw)
	case !strings.HasPrefix(u.Path, "/") || strings.ContainsRune(u.Path, 0):
		return "", false, fmt.Errorf("%q has no absolute path; write file:///srv/docs/page.md", raw)
	}
	p := u.Path
	if runtime.GOOS == "windows" {
		p = strings.TrimPrefix(p, "/")
	}
	return filepath.Clean(filepath.FromSlash(p)), strings.HasSuffix(p, "/"), nil
}

// Check returns why the file or folder of the URL raw cannot be watched where only the files and
// folders of allow may be read, or nil. Whether it exists does not matter.
func Check(raw string, allow []string) error {
	path, folder, err := Path(raw)
	if err != nil || permittedEntries(path, allow) != nil {
		return err
	}
	hint := path
	if !folder {
		hint = filepath.Dir(path)
	}
	return fmt.Errorf("%s may not be read; permit it, or a folder that holds it, with allow: {files: [%s]}", path, hint)
}

// CheckAllow returns why path cannot be in a list of permitted files and folders, or nil.
func CheckAllow(path string) error {
	switch {
	case path == "":
		return fmt.Errorf("it is empty; name a folder such as /srv/docs")
	case strings.HasPrefix(path, Scheme+":"):
		return fmt.Errorf("%q is a URL; write the path of a file or folder such as /srv/docs", path)
	case !filepath.IsAbs(path):
		return fmt.Errorf("%q is not an absolute path; write one such as /srv/docs", path)
	}
	return nil
}

// permittedEntries returns the entries of allow that are path or hold it, the widest first.
func permittedEntries(path string, allow []string) []string {
	var found []string
	for _, entry := range allow {
		if rel, err := filepath.Rel(entry, path); err == nil && filepath.IsLocal(rel) {
			found = append(found, filepath.Clean(entry))
		}
	}
	slices.SortFunc(found, func(a, b string) int { return len(a) - len(b) })
	return found
}

// openRoot opens the widest permitted folder that holds path, and returns the name of path in it. A
// permitted file permits nothing else in its folder.
func openRoot(path string, allow []string) (*os.Root, string, error) {
	found := permittedEntries(path, allow)
	if len(found) == 0 {
		return nil, "", errNotPermitted
	}
	folder := found[0]
	switch info, err := os.Stat(folder); {
	case folder == path && (err != nil || !info.IsDir()):
		folder = filepath.Dir(folder)
	case err == nil && !info.IsDir():
		return nil, "", syscall.ENOTDIR
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, "", err
	}
	name, err := filepath.Rel(folder, path)
	if err != nil {
		root.Close()
		return nil, "", err
	}
	return root, name, nil
}

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
