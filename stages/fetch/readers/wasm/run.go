package wasm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/sys"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/readers/blocks"
)

// run returns what the module writes of raw.
func (r *Reader) run(parent context.Context, raw pipeline.Raw) ([]byte, error) {
	if err := parent.Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(parent, r.cfg.Timeout)
	defer cancel()
	memory := &linearMemory{limit: uint64(r.cfg.Memory)}
	out, complaint := &blocks.Output{End: cancel}, &blocks.Complaint{}
	cfg := wazero.NewModuleConfig().WithName(""). // any number of instances, without a name
							WithArgs("reader").WithStdin(bytes.NewReader(raw.Body)).WithStdout(out).WithStderr(complaint)
	for name, value := range map[string]string{
		"VOKTER_URL": raw.URL, "VOKTER_CONTENT_TYPE": raw.ContentType, "VOKTER_CONTENT_LANGUAGE": raw.ContentLanguage,
	} {
		cfg = cfg.WithEnv(name, strings.ReplaceAll(value, "\x00", ""))
	}
	instance, err := r.module.runtime.InstantiateModule(experimental.WithMemoryAllocator(ctx, memory), r.module.compiled, cfg)
	if instance != nil {
		_ = instance.Close(context.WithoutCancel(ctx))
	}
	code := uint32(0)
	if exit, ok := errors.AsType[*sys.ExitError](err); ok {
		code = exit.ExitCode()
	}
	switch {
	case out.IsFull:
		return nil, &pipeline.FetchError{Class: pipeline.FailTooLarge, Reason: fmt.Sprintf("the module %s wrote more than %d bytes", r.cfg.Name, blocks.MaxOutput)}
	case err == nil:
		return out.Bytes(), nil
	case parent.Err() != nil:
		return nil, parent.Err()
	case ctx.Err() != nil:
		return nil, r.unreadableError("took longer than %v, which is its timeout", r.cfg.Timeout)
	case memory.isRefused:
		return nil, r.unreadableError("needs more memory than %d bytes, which is its limit", r.cfg.Memory)
	case code != 0 && complaint.Line() != "":
		return nil, r.unreadableError("cannot read the page: %s", complaint.Line())
	case code != 0:
		return nil, r.unreadableError("ended with exit code %d and gave no reason on standard error", code)
	default:
		return nil, r.unreadableError("crashed: %s", crashReason(err, complaint))
	}
}

// crashReason returns the first line that says why a module crashed, and what it wrote before.
func crashReason(err error, complaint *blocks.Complaint) string {
	reason := err.Error()
	if _, rest, ok := strings.Cut(reason, "failed: "); ok { // behind names that say nothing to a user
		reason = rest
	}
	reason = blocks.FirstLine(reason)
	if said := complaint.Line(); said != "" {
		reason += ": " + said
	}
	return reason
}

// pageSize is the unit of memory in WebAssembly, in bytes.
const pageSize = 64 << 10

// linearMemory is the memory of an instance. It notes that the instance was refused more.
type linearMemory struct {
	limit     uint64
	bytes     []byte
	isRefused bool
}

// Allocate returns m: a module has one memory.
func (m *linearMemory) Allocate(_, _ uint64) experimental.LinearMemory { return m }

// Reallocate returns the memory with a length of size bytes, or nil where that is too much.
func (m *linearMemory) Reallocate(size uint64) []byte {
	if size > m.limit {
		m.isRefused = true
		return nil
	}
	if size > uint64(cap(m.bytes)) {
		larger := make([]byte, size, min(max(size, 2*uint64(cap(m.bytes))), m.limit))
		copy(larger, m.bytes)
		m.bytes = larger
	}
	m.bytes = m.bytes[:size]
	return m.bytes
}

// Free leaves the memory to the garbage collector.
func (m *linearMemory) Free() { m.bytes = nil }

var (
	_ experimental.MemoryAllocator = (*linearMemory)(nil)
	_ experimental.LinearMemory    = (*linearMemory)(nil)
)
