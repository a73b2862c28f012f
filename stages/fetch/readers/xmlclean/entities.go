package xmlclean

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/vokter/vokter/stages/fetch/readers/blocks"
)

// Bounds of the entities that a page declares.
const (
	maxSubset     = 256 << 10 // up to the end of the document type
	maxEntities   = 2000
	maxEntityText = 64 << 10 // of one entity, with those within it
	maxExpanded   = 1 << 20  // of all references, beyond the size of the page
)

// subsetPattern matches a page up to the end of its document type, and what that declares within itself. entityPattern
// matches the declaration of an entity there, or what may look like one within: with a % it is one of the document type
// alone, and by SYSTEM or PUBLIC one that stands in another file.
var (
	subsetPattern = regexp.MustCompile(`(?s)^(?:\s|<!--.*?-->|<\?.*?\?>)*<!DOCTYPE(?:[^\["'>]|"[^"]*"|'[^']*')*` +
		`\[((?:<!--.*?-->|<\?.*?\?>|"[^"]*"|'[^']*'|[^\]"'])*)\]\s*>`)
	entityPattern = regexp.MustCompile(`(?s)<!--.*?-->|<\?.*?\?>|<!ENTITY\s+(%\s+)?([^\s%"'<>&;]+)\s+(?:(SYSTEM|PUBLIC)\s|"([^"]*)"|'([^']*)')`)
)

// expandEntities writes the text of the entities that body declares in its document type in place of the references to
// them, and blanks the declarations. Entities in other files are not fetched. One that is too long, or has itself
// within it, stays as it is written.
func expandEntities(body []byte, passed *blocks.Passed) []byte {
	head := body[:min(len(body), maxSubset)]
	at := subsetPattern.FindSubmatchIndex(head)
	if at == nil {
		if i := bytes.IndexAny(head, "[>"); len(head) < len(body) && i > 0 && head[i] == '[' && bytes.Contains(head, []byte("<!ENTITY")) {
			passed.Note("a document type of more than 256 KiB was passed over, with its entities", "", body, 0)
		}
		return body
	}
	subset, end := body[at[2]:at[3]], at[1]
	e := entities{declared: make(map[string]string), texts: make(map[string]string), left: maxExpanded + len(body)}
	for _, m := range entityPattern.FindAllSubmatch(subset, maxEntities) {
		name := string(m[2])
		if _, known := e.declared[name]; known || name == "" || len(m[1]) > 0 || slices.Contains(predefined, name) {
			continue // the first declaration counts
		}
		if len(m[3]) > 0 {
			e.declared[name] = noText
			continue
		}
		c := copier{body: append(m[4], m[5]...)}
		e.declared[name] = string(c.expandCharacters())
	}
	c := copier{body: body, out: blank(body[:end]), done: end}
	for i := end; i < len(body); {
		switch body[i] {
		case '<':
			i = behindUnparsed(body, i)
			continue
		case '&':
			if name, length := entityName(body[i:]); length > 0 {
				if text, ok := e.reference(name, body, i, passed); ok {
					c.replace(i, i+length, text)
				}
			}
		}
		i++
	}
	return c.result()
}

// noText is the text of an entity that has none: it stands in another file, is endless or too long.
const noText = "\x00"

// predefined are the entities that every page has.
var predefined = []string{"lt", "gt", "amp", "quot", "apos"}

// entities are those of a page.
type entities struct {
	declared map[string]string // as they are declared, with entities within them
	texts    map[string]string // without
	left     int               // how many bytes may still be written
}

// entityName returns the name in the reference at the beginning of s, and how long that is; 0 if it is none.
func entityName(s []byte) (name string, length int) {
	const longest = 200
	end := bytes.IndexByte(s[:min(len(s), longest)], ';')
	if end < 2 || bytes.ContainsAny(s[1:end], "&<># \t\r\n") {
		return "", 0
	}
	return string(s[1:end]), end + 1
}

// reference returns the text of the entity that the reference at body[at] names. ok is false if it stays.
func (e *entities) reference(name string, body []byte, at int, passed *blocks.Passed) (text string, ok bool) {
	if literal, declared := e.declared[name]; !declared {
		return "", false
	} else if literal == noText {
		passed.Note("a reference to an entity in another file was left as it is", "references to entities in other files were left as they are", body, at)
		return "", false
	}
	if text, ok = e.expand(name); !ok || len(text) > e.left {
		passed.Note("a reference to an entity that is endless or too long was left as it is",
			"references to entities that are endless or too long were left as they are", body, at)
		return "", false
	}
	e.left -= len(text)
	return text, true
}

// expand returns the text of a declared entity, with those within it. ok is false if it is too long or has itself
// within it.
func (e *entities) expand(name string) (text string, ok bool) {
	if text, known := e.texts[name]; known {
		return text, text != noText
	}
	e.texts[name] = noText // while it is expanded, and if that fails
	literal := e.declared[name]
	c := copier{body: []byte(literal)}
	for i := 0; i < len(literal); i++ {
		if literal[i] != '&' {
			continue
		}
		inner, length := entityName(c.body[i:])
		if literal, declared := e.declared[inner]; !declared || literal == noText {
			continue
		}
		within, ok := e.expand(inner)
		if !ok || len(c.out)+len(within) > maxEntityText {
			return "", false
		}
		c.replace(i, i+length, within)
		i += length - 1
	}
	text = asContent(string(c.result()))
	if len(text) > min(maxEntityText, e.left) {
		return "", false
	}
	e.left -= len(text)
	e.texts[name] = text
	return text, true
}

// asContent returns the text of an entity so that it can stand in a text and in an attribute. A line end would change
// the numbers of the lines behind it.
func asContent(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return ' '
		}
		return r
	}, text)
	if strings.Contains(text, "<") {
		return text // markup has quotes of its own
	}
	return strings.NewReplacer(`"`, "&#34;", "'", "&#39;").Replace(text)
}

// expandCharacters writes the characters in place of the references to them, as in the declaration of an entity.
func (c *copier) expandCharacters() []byte {
	for i := 0; i < len(c.body); i++ {
		if c.body[i] != '&' {
			continue
		}
		if r, length := characterAt(c.body[i:]); length > 0 && isPermitted(r) {
			c.replace(i, i+length, string(r))
			i += length - 1
		}
	}
	return c.result()
}
