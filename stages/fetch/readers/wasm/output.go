package wasm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/readers/blocks"
	"github.com/vokter/vokter/stages/fetch/readers/selector"
)

// maxDepth is how deeply items may be nested.
const maxDepth = 100

// outputParser reads what a module wrote.
type outputParser struct {
	ctx             context.Context
	selected        *selector.Text
	hasTitleBlock   bool // the title is the first block
	body            blocks.Builder
	blockCount      int // blocks so far, wanted or not
	title, language string
}

// parse reads out: JSON if it begins with a brace, and otherwise text.
func (p *outputParser) parse(out []byte) error {
	if !utf8.Valid(out) {
		return fmt.Errorf("it is not valid UTF-8 at byte %d", validLength(out))
	}
	if bytes.HasPrefix(out, []byte("{")) {
		return p.parseJSON(out)
	}
	for line := range bytes.Lines(out) {
		if err := p.addBlock(string(line)); err != nil {
			return err
		}
	}
	return nil
}

// validLength returns how many bytes at the beginning of b are valid UTF-8.
func validLength(b []byte) int {
	n := 0
	for n < len(b) {
		r, size := utf8.DecodeRune(b[n:])
		if r == utf8.RuneError && size <= 1 {
			break
		}
		n += size
	}
	return n
}

// toText returns the text of the page raw.
func (p *outputParser) toText(raw pipeline.Raw) (pipeline.Text, error) {
	if err := p.selected.End(); err != nil {
		return pipeline.Text{}, err
	}
	t := pipeline.Text{Content: p.body.Content(), Keys: p.body.Keys(), Title: p.title, Language: p.language}
	if t.Language == "" {
		t.Language = blocks.LanguageTag(raw.ContentLanguage)
	}
	if p.hasTitleBlock && t.Title != "" {
		t.Content = t.Title + string(pipeline.BlockEnd) + t.Content
	}
	return t, nil
}

// addBlock adds what is wanted of a block.
func (p *outputParser) addBlock(s string) error {
	p.blockCount++
	if err := p.selected.Blocks(p.ctx, p.blockCount, s, p.body.Block); err != nil {
		return err
	}
	if p.body.Len()+len(p.title) > pipeline.MaxText {
		return blocks.TooLarge()
	}
	return nil
}

// errJSONShape says what JSON a module may write.
var errJSONShape = errors.New(`JSON must be an object of the members "title", "language" and "blocks"`)

// parseJSON reads JSON. It takes one token at a time, so that it needs no more memory than its input.
func (p *outputParser) parseJSON(out []byte) error {
	d := json.NewDecoder(bytes.NewReader(out))
	err := p.parseMembers(d)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("something stands behind the object")
		}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = errors.New("the JSON is cut off")
	}
	if _, ok := errors.AsType[*pipeline.FetchError](err); ok || err == nil || p.ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("%w, at byte %d of the JSON (text that begins with a brace must begin with a line feed before it)", err, d.InputOffset())
}

func (p *outputParser) parseMembers(d *json.Decoder) error {
	if _, err := d.Token(); err != nil { // the brace
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		switch name {
		case "title":
			if p.title, err = nextLine(d, "title"); err == nil && len(p.title) > pipeline.MaxText {
				err = blocks.TooLarge()
			}
		case "language":
			var tag string
			if tag, err = nextLine(d, "language"); err == nil {
				p.language = blocks.LanguageTag(tag)
			}
		case "blocks":
			err = p.parseBlocks(d)
		default:
			err = errJSONShape
		}
		if err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// nextLine returns the string that comes next.
func nextLine(d *json.Decoder, member string) (string, error) {
	v, err := d.Token()
	if err != nil {
		return "", err
	}
	s, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("%s must be a string", member)
	}
	return blocks.Line(s), nil
}

// parseBlocks reads a list of blocks: strings, and lists of blocks, which are items. An item may hold an object with
// its key.
func (p *outputParser) parseBlocks(d *json.Decoder) error {
	errBlocks := errors.New("blocks must be a list of strings, and of such lists")
	if v, err := d.Token(); err != nil {
		return err
	} else if v != json.Delim('[') {
		return errBlocks
	}
	for depth := 1; depth > 0; {
		v, err := d.Token()
		if err != nil {
			return err
		}
		switch v := v.(type) {
		case string:
			err = p.addBlock(v)
		case json.Delim:
			switch v {
			case '[':
				depth++
				p.body.ItemStart()
			case ']':
				depth--
				p.body.ItemEnd() // of the list itself, none is open
			default:
				if depth < 2 {
					return errBlocks
				}
				err = p.parseKey(d)
			}
		default:
			err = errBlocks
		}
		if depth > maxDepth {
			err = fmt.Errorf("blocks are nested more than %d deep", maxDepth)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// parseKey reads the rest of an object with the key of the present item.
func (p *outputParser) parseKey(d *json.Decoder) error {
	name, err := d.Token()
	if err != nil {
		return err
	}
	if name != "key" {
		return errors.New(`an object within an item must have the member "key" alone`)
	}
	id, err := nextLine(d, "key")
	if err != nil {
		return err
	}
	p.body.SetKey(pipeline.NewKey("", id))
	if end, err := d.Token(); err != nil {
		return err
	} else if end != json.Delim('}') {
		return errors.New(`an object within an item must have the member "key" alone`)
	}
	return nil
}
