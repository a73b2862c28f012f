// Package wasm reads pages by WebAssembly modules: programs for WASI preview 1 that get a page as
// standard input and write its text to standard output. docs/wasm-readers.md describes them for
// their authors.
package wasm

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"mime"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/stages/fetch/readers/selector"
)

// Defaults and bounds of a Config.
const (
	DefaultMemory  = 64_000_000
	MinMemory      = 1_000_000
	MaxMemory      = 4_000_000_000
	DefaultTimeout = 5 * time.Second
	MaxTimeout     = time.Minute
)

// Config is a module and what it may use.
type Config struct {
	// Name is what reasons of failed checks call the module, such as its file name. Required.
	Name string
	// Module is the module in WebAssembly's binary format. Required.
	Module []byte
	// Types are the media types that it reads, such as "application/x", in lower case and without
	// parameters. Required.
	Types []string
	// Memory is how large the memory of one instance may become, in bytes, from MinMemory to
	// MaxMemory. Default DefaultMemory.
	Memory int64
	// Timeout is how long reading one page may take, at most MaxTimeout. Default DefaultTimeout.
	Timeout time.Duration
}

// Reader reads pages by a module. Each page gets an instance of its own, which knows nothing of
// other pages and reaches no files, no network, no clock and no random numbers: equal pages give
// equal texts. It does not change when the file of its module does.
type Reader struct {
	cfg       Config
	module    *compiledModule
	extractor string
}

var _ pipeline.Reader = (*Reader)(nil)

// New returns a Reader, or all that is wrong with c, as joined *pipeline.FieldErrors. A module is
// compiled once in a process, however many Readers have it.
func New(c Config) (*Reader, error) {
	c.Memory = cmp.Or(c.Memory, DefaultMemory)
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.Types = slices.Clone(c.Types)
	if err := c.validate(); err != nil {
		return nil, err
	}
	m, err := loadModule(c.Module)
	if err == nil {
		err = m.checkMemory(c.Memory)
	}
	if err != nil {
		return nil, &pipeline.FieldError{Field: "wasm", Reason: err.Error()}
	}
	c.Module = nil
	return &Reader{cfg: c, module: m, extractor: fmt.Sprintf("wasm/1/%x", m.sum[:8])}, nil
}

func (c Config) validate() error {
	var errs []error
	wrong := func(field, format string, args ...any) {
		errs = append(errs, &pipeline.FieldError{Field: field, Reason: fmt.Sprintf(format, args...)})
	}
	if len(c.Types) == 0 {
		wrong("types", "is missing; list the content types that the module reads, such as [application/pdf]")
	}
	for i, t := range c.Types {
		if parsed, params, err := mime.ParseMediaType(t); err != nil || parsed != t || len(params) > 0 || strings.Count(t, "/") != 1 {
			wrong("types", "%.80q is no media type; write it in lower case and without parameters, such as application/pdf", t)
		} else if slices.Contains(c.Types[:i], t) {
			wrong("types", "%q is listed twice; list it once", t)
		}
	}
	if c.Memory < MinMemory || c.Memory > MaxMemory {
		wrong("memory", "%d bytes are not between 1MB and 4GB", c.Memory)
	}
	if c.Timeout < 0 || c.Timeout > MaxTimeout {
		wrong("timeout", "%s is not between 0s and %s", c.Timeout, MaxTimeout)
	}
	return errors.Join(errs...)
}

// ContentTypes returns Config.Types.
func (r *Reader) ContentTypes() []string { return slices.Clone(r.cfg.Types) }

// Extractor names the rules by which the text is made: it differs for each module.
func (r *Reader) Extractor() string { return r.extractor }

// Read returns the text of view. Its line ranges and regular expressions count; the lines are the
// blocks that the module wrote. A module that fails, takes more time or memory than it may, or
// writes something that is no text, gives a *pipeline.FetchError of class FailUnreadable, and one
// that writes too much of class FailTooLarge.
func (r *Reader) Read(ctx context.Context, raw pipeline.Raw, view pipeline.View) (pipeline.Text, error) {
	wanted, err := selector.NewText(view)
	if err != nil {
		return pipeline.Text{}, selector.Unreadable(err)
	}
	out, err := r.run(ctx, raw)
	if err != nil {
		return pipeline.Text{}, err
	}
	p := &outputParser{ctx: ctx, selected: wanted, hasTitleBlock: len(view.Select) == 0}
	if err := p.parse(out); err != nil {
		return pipeline.Text{}, r.failureOf(err)
	}
	return p.toText(raw)
}

// failureOf makes the failed check of a page whose text cannot be used. It leaves alone what says
// already which check failed, and that the time of the check is over.
func (r *Reader) failureOf(err error) error {
	if _, ok := errors.AsType[*pipeline.FetchError](err); ok || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return r.unreadableError("wrote what is no text: %v", err)
}

// unreadableError is the failed check of a page that the module cannot read.
func (r *Reader) unreadableError(format string, args ...any) error {
	return &pipeline.FetchError{Class: pipeline.FailUnreadable, Reason: fmt.Sprintf("the module %s ", r.cfg.Name) + fmt.Sprintf(format, args...)}
}

// moduleSum identifies a module by its content.
type moduleSum = [sha256.Size]byte

// yamlOptions are those of a reader in a configuration.
type yamlOptions struct {
	Wasm    registry.File `yaml:"wasm"`
	Types   []string      `yaml:"types"`
	Memory  registry.Size `yaml:"memory"`
	Timeout time.Duration `yaml:"timeout"`
}

// Register makes r know readers of the kind wasm.
func Register(r *registry.Registry) {
	registry.AddReader(r, "wasm", func(o yamlOptions, _ registry.Env) (*Reader, error) {
		return New(Config{
			Name: filepath.Base(o.Wasm.Path), Module: o.Wasm.Content, Types: o.Types, Memory: int64(o.Memory), Timeout: o.Timeout,
		})
	})
}
