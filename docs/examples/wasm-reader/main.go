// Command wasm-reader is a reader of Word documents (.docx) for Vokter, as a WebAssembly module:
//
//	GOOS=wasip1 GOARCH=wasm go build -o docx.wasm .
//
// It reads a page from standard input and writes its text to standard output. A page that it cannot
// read ends it with exit code 1, and the reason on standard error.
package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	err := run(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// document is what a reader may write in place of plain text.
type document struct {
	Title    string `json:"title,omitempty"`
	Language string `json:"language,omitempty"`
	// Blocks are strings, and lists of blocks: here the rows of tables.
	Blocks []any `json:"blocks"`
}

func run(in io.Reader, out io.Writer) error {
	page, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	archive, err := zip.NewReader(bytes.NewReader(page), int64(len(page)))
	if err != nil {
		return fmt.Errorf("it is no Word document: %w", err)
	}
	var doc document
	if err := eachToken(archive, "word/document.xml", doc.body()); err != nil {
		return err
	}
	if err := eachToken(archive, "docProps/core.xml", doc.properties()); err != nil && !errors.Is(err, errMissing) {
		return err
	}
	return json.NewEncoder(out).Encode(doc)
}

var errMissing = errors.New("the file is missing in the document")

// eachToken calls f for each token of an XML file in the archive.
func eachToken(archive *zip.Reader, name string, f func(xml.Token)) error {
	file, err := archive.Open(name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, errMissing)
	}
	defer file.Close()
	d := xml.NewDecoder(file)
	for {
		token, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		f(token)
	}
}

// body collects the paragraphs (w:p) as blocks, and the rows of tables (w:tr) as items.
func (doc *document) body() func(xml.Token) {
	var rows [][]any // those that are open, and what they hold
	var paragraph strings.Builder
	text := false
	add := func(block any) {
		if n := len(rows); n > 0 {
			rows[n-1] = append(rows[n-1], block)
		} else {
			doc.Blocks = append(doc.Blocks, block)
		}
	}
	return func(token xml.Token) {
		switch t := token.(type) {
		case xml.StartElement:
			switch t.Name.Local {
			case "tr":
				rows = append(rows, []any{})
			case "t":
				text = true
			case "tab", "br":
				paragraph.WriteByte(' ')
			case "lang":
				if doc.Language == "" {
					doc.Language = attribute(t, "val")
				}
			}
		case xml.EndElement:
			switch n := len(rows); t.Name.Local {
			case "t":
				text = false
			case "p":
				add(paragraph.String())
				paragraph.Reset()
			case "tr":
				if n > 0 {
					row := rows[n-1]
					rows = rows[:n-1]
					add(row)
				}
			}
		case xml.CharData:
			if text {
				paragraph.Write(t)
			}
		}
	}
}

// properties finds the title (dc:title).
func (doc *document) properties() func(xml.Token) {
	title := false
	return func(token xml.Token) {
		switch t := token.(type) {
		case xml.StartElement:
			title = t.Name.Local == "title"
		case xml.EndElement:
			title = false
		case xml.CharData:
			if title {
				doc.Title += string(t)
			}
		}
	}
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}
