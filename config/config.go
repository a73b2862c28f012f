// Package config reads the YAML file of a pipeline into a vokter.Config. It is strict:
// whatever it does not know or cannot use is an error with file, line and column, and
// all errors are reported at once. It knows no plugins: they come in a
// registry.Registry.
package config

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/sources/browser"
	"github.com/vokter/vokter/stages/fetch/readers/markdown"
)

// maxFileBytes is the size of the largest configuration and of the largest secret, in bytes.
const maxFileBytes = 16 << 20

// Config is the contents of a file.
type Config struct {
	// Router is the pipeline; its Origin is "yaml".
	Router vokter.Config
	// Listen is the address of the HTTP listener, HOST:PORT; empty: there is none. Without a
	// host it listens on every address of the machine.
	Listen string
	// API has the settings of the management API at Listen.
	API API
	// Web has the settings of the web page at Listen.
	Web Web
	// Browser opens pages in the browser. It is among the Fetchers of Router.
	Browser *browser.Fetcher
	// Rest has the settings of the REST API of the first server; nil means that it is off.
	Rest *Rest
	// Transport has the settings of the transport; nil means the local one. The caller opens it.
	Transport registry.Transport
	// Options has a digest of the options of each sink by its name, including the variables and
	// files that they name. A reload compares it to see which sinks changed.
	Options map[string][sha256.Size]byte
	// Readers has a digest of the options of each reader by its name, including the file that it
	// names. A reload compares it to see which readers changed.
	Readers map[string][sha256.Size]byte
	// Warnings name settings that are valid but probably not intended, and their places.
	Warnings Errors
}

// Options alter how a file is read. The zero value is useful.
type Options struct {
	// Registry holds the plugins that the file may name; nil: none.
	Registry *registry.Registry
	// Allow are networks that fetch and sinks may reach besides those in the file.
	Allow []netip.Prefix
	// Data is the data directory, instead of the one in the file.
	Data string
	// Receivers is read in place of the file ReceiversFile in the data directory, unless it is nil.
	Receivers []byte
	// Named is called with each file that the configuration names, such as a token_file. Default:
	// it is not called.
	Named func(path string)
	// Files are files and folders that may be read besides those in the file, as absolute paths.
	Files []string
	// LookupEnv finds the variables that the file names. Default os.LookupEnv.
	LookupEnv func(string) (string, bool)
	// Logger is given to the plugins. Default: nothing is logged.
	Logger *slog.Logger
}

// Load reads the file at path. Its error is of type Errors and holds all mistakes.
func Load(path string, o Options) (*Config, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, Errors{{File: path, Message: err.Error()}}
	}
	return Parse(path, data, o)
}

// Parse reads a configuration from data; name stands for the file in errors. Its
// error is of type Errors and holds all mistakes.
func Parse(name string, data []byte, o Options) (*Config, error) {
	return parseInPieces(pieceSize, name, data, o)
}

// parseInPieces is Parse with the size of the pieces of a large file.
func parseInPieces(size int, name string, data []byte, o Options) (*Config, error) {
	o.Registry = cmp.Or(o.Registry, new(registry.Registry))
	if o.LookupEnv == nil {
		o.LookupEnv = os.LookupEnv
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Named == nil {
		o.Named = func(string) {}
	}
	d, f := decodeFile(name, data, o, size)
	f.Data = cmp.Or(o.Data, f.Data)
	more := d.addMoreSinks(f, o)
	f.Allow.Fetch = append(f.Allow.Fetch, o.Allow...)
	f.Allow.Sinks = append(f.Allow.Sinks, o.Allow...)
	f.Allow.Files = append(f.Allow.Files, o.Files...)
	through := d.buildTransport(f.Transport, o.Registry)
	sinks, receivers := d.buildSinks(f, o.Registry, o.Logger)
	sources := d.buildSources(f, o.Registry, o.Logger)
	readers := d.buildReaders(f, o.Registry, o.Logger)
	c := d.convertFile(f)
	c.API, c.Web, c.Rest = d.convertAPI(f), d.convertWeb(f), d.convertRest(f)
	c.Router.PublicURL = c.Web.PublicURL
	c.Router.Delivery.Receivers = receivers
	c.Router.Sinks, c.Router.Sources, c.Router.Readers = sinks, sources, append([]pipeline.Reader{markdown.New()}, readers...)
	for i, s := range c.Router.Subscriptions {
		if s.Channel != "" {
			path := fmt.Sprintf("subscriptions[%d].channel", i)
			if err := registry.TakeChannel(sinks, s.Sinks, s.Channel); err != nil {
				d.failPath(path, "%s: %v", path, err)
			}
		}
	}
	names := slices.Collect(maps.Keys(f.Sinks))
	d.checkChangeSinks("changes", f.Changes, names, sinks)
	for i, doc := range f.Documents {
		d.checkChangeSinks(fmt.Sprintf("documents[%d].changes", i), doc.Changes, names, sinks)
	}
	c.Options, c.Readers, c.Transport = d.sinkDigests, d.readerDigests, through
	d.addWarnings(f)
	for _, from := range more {
		d.errs, d.warnings = append(d.errs, from.errs...), append(d.warnings, from.warnings...)
	}
	if len(d.errs) == 0 { // mistakes that only the whole configuration shows
		for _, err := range splitJoined(c.Router.Validate()) {
			at := position{1, 1}
			if field, ok := errors.AsType[*pipeline.FieldError](err); ok && strings.HasPrefix(field.Field, "sinks.") {
				at = d.positionOfPath(field.Field)
			}
			d.failAt(at, "%v", err)
		}
	}
	d.warnings.sort()
	c.Warnings = d.warnings
	if len(d.errs) > 0 {
		d.errs.sort()
		return nil, d.errs
	}
	return c, nil
}

// newDecoder returns a decoder for file; a nil lookup knows no variables.
func newDecoder(file string, lookup func(string) (string, bool)) *decoder {
	if lookup == nil {
		lookup = func(string) (string, bool) { return "", false }
	}
	return &decoder{
		file: file, lookupEnv: lookup, anchors: make(map[string]ast.Node), rootKeys: make(map[string]position),
		positions: newPositionTable(), brokenPaths: make(map[string]bool), errorPositions: make(map[position]bool), maskedValues: make(map[string]string),
		sinkDigests: make(map[string][sha256.Size]byte), digest: sha256.New(), onFile: func(string) {},
	}
}

// Error is one mistake in a configuration. Its message says what is wrong and how to correct it.
type Error struct {
	File string
	// Line and Column count from 1; a column is a character. Both are 0 for a mistake that has
	// no place in the file, for example if the file cannot be read.
	Line, Column int
	Message      string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
}

// Errors are all mistakes in a configuration, in the order of their places.
type Errors []*Error

// Error returns the mistakes, one on each line.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the mistakes.
func (es Errors) Unwrap() []error {
	errs := make([]error, len(es))
	for i, e := range es {
		errs[i] = e
	}
	return errs
}

func (es Errors) sort() {
	slices.SortStableFunc(es, func(a, b *Error) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
}

// oneLine keeps a message from breaking the form of one mistake per line, and from steering a terminal.
func oneLine(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
	return strings.Map(func(r rune) rune {
		if render.Steers(r) {
			return utf8.RuneError
		}
		return r
	}, s)
}

var (
	_ error = (*Error)(nil)
	_ error = Errors(nil)
)
