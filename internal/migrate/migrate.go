// Package migrate reads the files of other programs that watch pages: urlwatch's urls.yaml, the
// backup of changedetection.io, OPML, and lists of URLs. It returns the subscriptions that come
// closest, and what could not be carried over.
package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/sources/browser"
)

// Formats of files.
const (
	FormatUrlwatch        = "urlwatch"
	FormatChangedetection = "changedetection"
	FormatOPML            = "opml"
	FormatList            = "list"
)

// Formats are all formats.
var Formats = []string{FormatUrlwatch, FormatChangedetection, FormatOPML, FormatList}

// Bounds of files, in bytes, and of the entries in one.
const (
	MaxFile      = 256 << 20 // of a file, which may be a zip with the texts of all pages
	maxTextBytes = 16 << 20  // of a file that is not a zip, and of what is read from a zip in all
	maxEntries   = 100_000
	maxZipFiles  = 1_000_000
)

// Entry is a subscription and how its page is fetched. Its Sinks are empty.
type Entry struct {
	// Name names the entry in the file.
	Name string
	// Notes are what the file says about the entry that is only for people, such as its tags.
	Notes        []string
	Subscription pipeline.Subscription
	// Headers and Cookies are sent with each request of the page.
	Headers, Cookies map[string]string
	// Username and Password are sent in basic authentication, unless both are empty.
	Username, Password string
	// Proxy is the URL of a proxy, or empty.
	Proxy string
	// Browser says that the page is opened in a browser, where Steps are done before it is read.
	Browser bool
	Steps   []browser.Step
}

// Lost is something that could not be carried over.
type Lost struct {
	// Entry names the entry, Key what of it was lost. Key is empty where it is the whole entry.
	Entry string `json:"entry"`
	Key   string `json:"key,omitempty"`
	// Advice says why, and what to do.
	Advice string `json:"advice"`
}

func (l Lost) String() string {
	if l.Key == "" {
		return l.Entry + ": " + l.Advice
	}
	return l.Entry + ": " + l.Key + ": " + l.Advice
}

// Result is the contents of a file besides its entries.
type Result struct {
	Format string
	Lost   []Lost
	each   func(Entry)
	count  int // of the entries
}

// addLost adds what could not be carried over, with the advice that format and args make.
func (r *Result) addLost(entry, key, format string, args ...any) {
	r.Lost = append(r.Lost, Lost{entry, key, fmt.Sprintf(format, args...)})
}

// setTitle sets the title of e, on one line and as long as titles may be.
func (e *Entry) setTitle(title string) {
	title = strings.Join(strings.FieldsFunc(title, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }), " ")
	if all := []rune(title); len(all) > pipeline.MaxTitleLength {
		title = string(all[:pipeline.MaxTitleLength])
	}
	e.Subscription.Title = title
}

// addTags adds tags to e, with a hyphen for each blank, which tags do not have.
func (e *Entry) addTags(tags ...string) {
	for _, t := range tags {
		t = strings.Join(strings.FieldsFunc(t, func(c rune) bool { return unicode.IsSpace(c) || !unicode.IsPrint(c) || c == ',' }), "-")
		if t != "" && !slices.Contains(e.Subscription.Tags, t) {
			e.Subscription.Tags = append(e.Subscription.Tags, t)
		}
	}
}

// add adds an entry, unless there are too many.
func (r *Result) add(e Entry) error {
	if r.count++; r.count > maxEntries {
		return fmt.Errorf("the file has more than %d entries; split it", maxEntries)
	}
	r.each(e)
	return nil
}

// Read reads a file in a format, or in the one that its contents suggest if format is empty. It calls each with each
// entry: all of them would take much memory.
func Read(data []byte, format string, each func(Entry)) (*Result, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if format == "" {
		if isConfiguration(data) {
			return nil, errors.New("it is a configuration of vokter-stream already, such as export writes; use it as it is: vokter-stream run -c FILE")
		}
		format = guessFormat(data)
	}
	zipped := bytes.HasPrefix(data, []byte("PK"))
	if !zipped {
		if len(data) > maxTextBytes {
			return nil, fmt.Errorf("the file is larger than %d MiB; split it", maxTextBytes>>20)
		}
		if !utf8.Valid(data) && format != FormatOPML { // XML declares its encoding
			return nil, errors.New("the file is not UTF-8; save it in that encoding")
		}
	}
	r := &Result{Format: format, each: each}
	var err error
	switch format {
	case FormatUrlwatch:
		err = r.readURLWatch(data)
	case FormatChangedetection:
		err = r.readChangedetection(data, zipped)
	case FormatOPML:
		err = r.readOPML(data)
	case FormatList:
		err = r.readList(data)
	default:
		err = fmt.Errorf("%q is no format; formats are %s", format, strings.Join(Formats, ", "))
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// isConfiguration reports whether data has the subscriptions of a configuration of this program.
func isConfiguration(data []byte) bool {
	for line := range bytes.Lines(data) {
		if bytes.HasPrefix(line, []byte("subscriptions:")) {
			return true
		}
	}
	return false
}

// guessFormat returns the format that data suggests.
func guessFormat(data []byte) string {
	text := bytes.TrimSpace(data)
	switch {
	case bytes.HasPrefix(text, []byte("PK")), bytes.HasPrefix(text, []byte("{")):
		return FormatChangedetection
	case bytes.HasPrefix(text, []byte("<")):
		return FormatOPML
	}
	for line := range bytes.Lines(text) {
		for _, key := range []string{"url:", "navigate:", "command:", "kind:", "name:", "---", "- url:"} {
			if bytes.HasPrefix(bytes.TrimSpace(line), []byte(key)) {
				return FormatUrlwatch
			}
		}
	}
	return FormatList
}
