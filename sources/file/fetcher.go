// Package filesource reads files and folders of this machine as pages with file URLs, below
// permitted folders only, and reports when the system says that one of them changed.
package filesource

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// DefaultMaxBody is the size of the largest file, in bytes.
const DefaultMaxBody = 10 << 20

// minTrustedAge is how old the last write to a file must be for its time and size to tell it from a
// later one: file systems count time in steps of up to 2 seconds.
const minTrustedAge = 3 * time.Second

// Config says what a Fetcher may read. The zero Config permits nothing.
type Config struct {
	// Allow lists what may be read, as absolute paths: a folder permits all that is in it and
	// below it, a file permits itself. A symbolic link that leads out of a folder is refused.
	Allow []string
	// MaxBody is the size of the largest file, in bytes. 0 means DefaultMaxBody.
	MaxBody int64
	// Now is the clock that writes are compared with; nil means time.Now.
	Now func() time.Time
	// Logger gets warnings about notifications that the system does not make. Nil discards them.
	Logger *slog.Logger
}

// Fetcher reads files and folders. It is safe for concurrent use.
type Fetcher struct {
	allow   []string
	maxBody int64
	now     func() time.Time
	watches *watches
}

var _ pipeline.Fetcher = (*Fetcher)(nil)

// New returns a Fetcher.
func New(c Config) *Fetcher {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.MaxBody <= 0 {
		c.MaxBody = DefaultMaxBody
	}
	return &Fetcher{allow: c.Allow, maxBody: c.MaxBody, now: c.Now, watches: newWatches(c.Logger)}
}

// Schemes returns file.
func (f *Fetcher) Schemes() []string { return []string{Scheme} }

// Notify calls changed with the URL of each page that was fetched from this Fetcher and may have
// changed since, soon after the change, until ctx is done. Where changed returns false the page is
// forgotten until it is fetched again. A burst of changes is one call. No call is certain: where
// the system cannot notify, the log says so and Notify returns nil.
func (f *Fetcher) Notify(ctx context.Context, changed func(ctx context.Context, page string) bool) error {
	return f.watches.run(ctx, changed)
}

// Fetch reads the file of r.URL, or lists the folder. Its errors are *pipeline.FetchErrors. A
// Response has an ETag of the file's time of modification, size and number on its disk, so that
// an unchanged file is not read again; it has none while the file is younger than 3 seconds.
func (f *Fetcher) Fetch(_ context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
	path, slash, err := Path(r.URL)
	if err != nil {
		return pipeline.Response{}, &pipeline.FetchError{Class: pipeline.FailURL, Reason: err.Error()}
	}
	// Notifications begin before the file is read, so that no change between the two is missed.
	// Where the page may not be read there are none.
	root, name, err := openRoot(path, f.allow)
	if err != nil {
		return pipeline.Response{}, fetchError(path, err)
	}
	defer root.Close()
	f.watches.set(r.URL, watchedNames(path))
	info, err := root.Stat(name) // opening a device can have effects
	if err != nil {
		return pipeline.Response{}, fetchError(path, err)
	}
	switch {
	case info.IsDir():
		return f.listFolder(r, root, path, name)
	case slash:
		return pipeline.Response{}, &pipeline.FetchError{Class: pipeline.FailURL, Reason: path + " is a file; write its URL without the slash at the end"}
	case !info.Mode().IsRegular():
		return pipeline.Response{}, fetchError(path, errNotRegular)
	case info.Size() > max(f.maxBody, r.MaxBody):
		return pipeline.Response{}, &pipeline.FetchError{Class: pipeline.FailTooLarge, Reason: fmt.Sprintf("the file is larger than %d bytes", max(f.maxBody, r.MaxBody))}
	}
	return f.readFile(r, root, path, name)
}

// readFile opens the file name in root for r.
func (f *Fetcher) readFile(r pipeline.FetchRequest, root *os.Root, path, name string) (pipeline.Response, error) {
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // should it be a FIFO by now
	if err != nil {
		return pipeline.Response{}, fetchError(path, err)
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		file.Close()
		return pipeline.Response{}, fetchError(path, err)
	}
	resp := pipeline.Response{URL: r.URL, Status: http.StatusOK, Header: make(http.Header), Body: file}
	tag := f.etag(info)
	if tag != "" && tag == r.ETag {
		file.Close()
		resp.Status, resp.Body = http.StatusNotModified, http.NoBody
		return resp, nil
	}
	if tag != "" {
		resp.Header.Set("ETag", tag)
	}
	if t := ContentType(name); t != "" {
		resp.Header.Set("Content-Type", t)
	}
	return resp, nil
}

// etag returns what tells the file of info from later ones, or "" while a later one could have the
// same.
func (f *Fetcher) etag(info fs.FileInfo) string {
	if age := f.now().Sub(info.ModTime()); age < minTrustedAge {
		return ""
	}
	return strconv.Quote(fmt.Sprintf("%d-%d-%d", info.ModTime().UnixNano(), info.Size(), inodeNumber(info)))
}

// mediaTypes are the media types of file names, by extension. All others are found out from what the
// file looks like: the tables of systems differ, and call TypeScript a video.
var mediaTypes = map[string]string{
	".html": "text/html", ".htm": "text/html", ".xhtml": "application/xhtml+xml", ".xht": "application/xhtml+xml",
	".txt": "text/plain", ".text": "text/plain", ".log": "text/plain", ".md": "text/markdown", ".markdown": "text/markdown",
	".json": "application/json", ".geojson": "application/geo+json", ".jsonld": "application/ld+json", ".jsonl": "application/x-ndjson", ".ndjson": "application/x-ndjson",
	".xml": "application/xml", ".rss": "application/rss+xml", ".atom": "application/atom+xml", ".rdf": "application/rdf+xml", ".svg": "image/svg+xml",
	".opml": "text/x-opml", ".csv": "text/csv", ".tsv": "text/tab-separated-values", ".ics": "text/calendar", ".pdf": "application/pdf",
}

// ContentType returns the media type of the file called name by its extension, or "" where its
// content has to tell.
func ContentType(name string) string { return mediaTypes[strings.ToLower(filepath.Ext(name))] }

var (
	errNotPermitted = errors.New("it is in no permitted folder")
	errNotRegular   = errors.New("it is no regular file")
)

// fetchError says why the file at path could not be read.
func fetchError(path string, err error) error {
	e := &pipeline.FetchError{Class: pipeline.FailUnreadable, Reason: path + " could not be read", Err: err}
	switch {
	case errors.Is(err, errNotPermitted):
		e.Class, e.Reason = pipeline.FailAddress, path+" is in no permitted folder; permit one with allow: {files: [...]}"
	case errors.Is(err, errNotRegular):
		e.Class, e.Reason = pipeline.FailType, path+" is a device, pipe or socket; only files and folders can be watched"
	case errors.Is(err, fs.ErrNotExist):
		e.Class, e.Reason = pipeline.FailMissing, path+" does not exist"
	case errors.Is(err, fs.ErrPermission):
		e.Reason = path + " may not be read by the user that this process runs as"
	case strings.Contains(err.Error(), "escapes from parent"): // os.Root has no error value for it
		e.Class, e.Reason = pipeline.FailAddress, path+" is, or is behind, a symbolic link that leads out of the permitted folder; permit the folder that it leads to, and watch the file there"
	case errors.Is(err, syscall.ELOOP):
		e.Reason = path + " is a symbolic link that leads to itself"
	case errors.Is(err, syscall.ENOTDIR):
		e.Class, e.Reason = pipeline.FailMissing, path+" does not exist: a part of its path is not a folder"
	}
	return e
}
