// Package config reads the YAML file of a pipeline into a vokter.Config. It is strict:
// whatever it does not know or cannot use is an error with file, line and column, and
// all errors are reported at once. It knows no plugins: they come in a
// registry.Registry.
package config

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline/registry"
)

// maxFile is the size of the largest configuration and of the largest secret, in bytes.
const maxFile = 16 << 20

// Config is what a file says.
type Config struct {
	// Router is the pipeline; its Origin is "yaml".
	Router vokter.Config
	// Listen is the address of the HTTP listener, HOST:PORT, or empty for none. Its host
	// is a loopback address.
	Listen string
	// Transport is what the file says of the transport; nil: it is the local one. Whoever makes the
	// Router opens it.
	Transport registry.Transport
	// Options has a digest of the options of each sink by its name, with what stands in the
	// variables and files that they name: another one means that they changed.
	Options map[string][sha256.Size]byte
	// Warnings are places that are no mistakes, but do not do what they seem to.
	Warnings Errors
}

// Options alter how a file is read. The zero value is useful.
type Options struct {
	// Registry holds the plugins that the file may name; nil: none.
	Registry *registry.Registry
	// TryTemplate says what is wrong with the template of a sink, whose source was found valid,
	// when it meets a notification. Default: nothing is.
	TryTemplate func(source string) error
	// Allow are networks that fetch and sinks may reach besides those in the file.
	Allow []netip.Prefix
	// Named is told of each file that the file names, such as a token_file. Default: nobody is.
	Named func(path string)
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
	if o.Registry == nil {
		o.Registry = new(registry.Registry)
	}
	if o.LookupEnv == nil {
		o.LookupEnv = os.LookupEnv
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Named == nil {
		o.Named = func(string) {}
	}
	d := newDecoder(name, o.LookupEnv)
	d.try, d.named = o.TryTemplate, o.Named
	f := new(file)
	if body := d.parse(data); body != nil {
		ast.Walk(d, body)
		d.value(body, reflect.ValueOf(f).Elem(), "")
	}
	f.Allow.Fetch = append(f.Allow.Fetch, o.Allow...)
	f.Allow.Sinks = append(f.Allow.Sinks, o.Allow...)
	through := d.buildTransport(f.Transport, o.Registry)
	sinks, sources := d.buildSinks(f, o.Registry, o.Logger), d.buildSources(f, o.Registry, o.Logger)
	c := d.convert(f)
	c.Router.Sinks, c.Router.Sources, c.Options, c.Transport = sinks, sources, d.options, through
	d.warnOf(f)
	if len(d.errs) == 0 { // what only the whole shows
		for _, err := range leaves(c.Router.Validate()) {
			d.failAt(position{1, 1}, "%v", err)
		}
	}
	d.warned.sort()
	c.Warnings = d.warned
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
		file: file, lookup: lookup, anchors: make(map[string]ast.Node),
		at: map[string]position{"": {1, 1}}, broken: make(map[string]bool), wrong: make(map[position]bool), shown: make(map[string]string),
		options: make(map[string][sha256.Size]byte), digest: sha256.New(), named: func(string) {},
	}
}

// parse returns the body of data, or nil where there is none.
func (d *decoder) parse(data []byte) ast.Node {
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // Windows' editors write it
	if i := invalidUTF8(data); i >= 0 {
		line := data[bytes.LastIndexByte(data[:i], '\n')+1 : i]
		d.failAt(position{bytes.Count(data[:i], []byte("\n")) + 1, utf8.RuneCount(line) + 1}, "the file is not UTF-8; save it in that encoding")
		return nil
	}
	d.source = strings.Split(string(data), "\n")
	tokens, ok := d.scan(data)
	if !ok {
		return nil
	}
	f, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		d.syntax(err)
		return nil
	}
	var body ast.Node
	for _, doc := range f.Docs {
		switch {
		case doc.Body == nil:
		case body != nil:
			d.failNode(doc.Body, "a second YAML document begins here; a configuration is one")
		default:
			body = doc.Body
		}
	}
	if _, null := body.(*ast.NullNode); null {
		return nil
	}
	return body
}

// invalidUTF8 returns where data stops being UTF-8, or -1.
func invalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

// syntax reports that the file is not YAML.
func (d *decoder) syntax(err error) {
	var ye yaml.Error
	if !errors.As(err, &ye) || ye.GetToken() == nil || ye.GetToken().Position == nil {
		d.failAt(position{1, 1}, "not YAML: %v", err)
		return
	}
	p := position{ye.GetToken().Position.Line, ye.GetToken().Position.Column}
	if at, hint := d.misread(p); hint != "" {
		d.failAt(at, "not YAML: %s", hint)
		return
	}
	hint := ""
	if strings.Contains(d.sourceLine(p.line), "${") {
		hint = `; within [ ] and { } write "${NAME}" in quotes`
	}
	d.failAt(p, "not YAML: %s%s", ye.GetMessage(), hint)
}

// readFile reads a file of at most maxFile bytes. Its errors say what to do.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("the file %s does not exist", path)
	case err != nil:
		return nil, cannotRead(path, err)
	case info.IsDir():
		return nil, fmt.Errorf("%s is a directory; name a file in it", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, cannotRead(path, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1)) // a device or a pipe does not tell its size
	switch {
	case err != nil:
		return nil, cannotRead(path, err)
	case len(b) > maxFile:
		return nil, fmt.Errorf("the file %s is larger than %d MiB", path, maxFile>>20)
	}
	return b, nil
}

func cannotRead(path string, err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	}
	return fmt.Errorf("the file %s cannot be read: %w", path, err)
}
