package migrate

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/net/html/charset"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pageurl"
)

// readList reads one URL a line. What follows a blank behind a URL are tags, as in the list of
// changedetection.io. Empty lines and those that begin with # are skipped.
func (r *Result) readList(data []byte) error {
	number := 0
	for line := range bytes.Lines(data) {
		number++
		text := strings.TrimSpace(string(line))
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		url, tags, _ := strings.Cut(text, " ")
		name := fmt.Sprintf("line %d", number)
		if err := pageurl.Check(url, "http", "https"); err != nil {
			r.addLost(name, "", "it is left out: %v", err)
			continue
		}
		e := Entry{Name: name, Subscription: pipeline.Subscription{URL: url}}
		e.addTags(strings.Split(tags, ",")...)
		if err := r.add(e); err != nil {
			return err
		}
	}
	return nil
}

// maxOutlineDepth is how deep outlines may be nested.
const maxOutlineDepth = 100

// readOPML reads the feeds of an OPML file.
func (r *Result) readOPML(data []byte) error {
	in := xml.NewDecoder(bytes.NewReader(data))
	in.CharsetReader = charset.NewReaderLabel
	in.Strict = false // many programs write & as it is
	in.Entity = xml.HTMLEntity
	root := ""
	var folders []string
	for {
		t, err := in.Token()
		switch {
		case errors.Is(err, io.EOF) && root != "opml":
			return errors.New("the file is not OPML: it has no element <opml>; for a list of URLs give --from list")
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("the file is not OPML: %w", err)
		}
		switch t := t.(type) {
		case xml.StartElement:
			if root == "" {
				root = strings.ToLower(t.Name.Local)
			}
			if !strings.EqualFold(t.Name.Local, "outline") {
				continue
			}
			if len(folders) >= maxOutlineDepth {
				return fmt.Errorf("the outlines are nested more than %d levels deep", maxOutlineDepth)
			}
			title, err := r.readOutline(t, folders)
			if err != nil {
				return err
			}
			folders = append(folders, title)
		case xml.EndElement:
			if strings.EqualFold(t.Name.Local, "outline") && len(folders) > 0 {
				folders = folders[:len(folders)-1]
			}
		}
	}
}

// httpOfFeed returns url, whose scheme feed is that of feed readers, with the scheme https or that behind it.
func httpOfFeed(url string) string {
	rest, ok := strings.CutPrefix(url, "feed:")
	switch {
	case !ok:
		return url
	case strings.HasPrefix(rest, "//"):
		return "https:" + rest
	case strings.HasPrefix(rest, "http://"), strings.HasPrefix(rest, "https://"):
		return rest
	}
	return url
}

// readOutline reads an outline within folders and returns its title.
func (r *Result) readOutline(t xml.StartElement, folders []string) (title string, err error) {
	attributes := make(map[string]string)
	for _, a := range t.Attr {
		attributes[strings.ToLower(a.Name.Local)] = strings.TrimSpace(a.Value)
	}
	title = cmp.Or(attributes["title"], attributes["text"])
	url, feed := attributes["xmlurl"], true
	for _, key := range []string{"url", "htmlurl"} {
		if url == "" {
			url, feed = attributes[key], false
		}
	}
	url = httpOfFeed(url)
	if url == "" {
		return title, nil // a folder
	}
	name := cmp.Or(title, url)
	if err := pageurl.Check(url, "http", "https"); err != nil {
		r.addLost(name, "", "it is left out: %v", err)
		return title, nil
	}
	e := Entry{Name: name, Subscription: pipeline.Subscription{URL: url, View: pipeline.View{Items: feed}}}
	e.setTitle(title)
	if path := strings.Join(folders, "/"); strings.Trim(path, "/") != "" {
		e.Notes = append(e.Notes, "folder: "+path)
	}
	return title, r.add(e)
}
