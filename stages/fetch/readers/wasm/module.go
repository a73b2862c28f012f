package wasm

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"weak"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// compiledModule is a compiled module. It has a runtime of its own, so that all of it is garbage when no
// Reader holds it any more.
type compiledModule struct {
	sum      moduleSum
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
}

// moduleCache are those that Readers hold, by their content. A configuration that is read again
// compiles nothing that is compiled already.
var moduleCache struct {
	sync.Mutex
	bySum map[moduleSum]weak.Pointer[compiledModule]
}

// loadModule returns the module with the content of binary, or why it can be none.
func loadModule(binary []byte) (*compiledModule, error) {
	sum := sha256.Sum256(binary)
	moduleCache.Lock()
	defer moduleCache.Unlock()
	if m := moduleCache.bySum[sum].Value(); m != nil {
		return m, nil
	}
	m, err := compileModule(binary)
	if err != nil {
		return nil, err
	}
	m.sum = sum
	held := map[moduleSum]weak.Pointer[compiledModule]{sum: weak.Make(m)}
	for sum, p := range moduleCache.bySum {
		if p.Value() != nil {
			held[sum] = p
		}
	}
	moduleCache.bySum = held
	return m, nil
}

// compileModule returns the module in binary, if it is a program for WASI preview 1.
func compileModule(binary []byte) (*compiledModule, error) {
	binary, err := fixTables(binary)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCloseOnContextDone(true).WithDebugInfoEnabled(false))
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, rt); err != nil {
		return nil, err
	}
	compiled, err := rt.CompileModule(ctx, binary)
	if err == nil {
		err = checkABI(compiled, rt.Module(wasi_snapshot_preview1.ModuleName))
	}
	if err != nil {
		_ = rt.Close(ctx)
		return nil, err
	}
	return &compiledModule{runtime: rt, compiled: compiled}, nil
}

// command is the function that WASI calls to run a program, and memory the memory that it reads.
const (
	startFunction = "_start"
	memoryName    = "memory"
)

// checkABI returns why m cannot be run as docs/wasm-readers.md describes it.
func checkABI(m wazero.CompiledModule, wasi api.Module) error {
	start, ok := m.ExportedFunctions()[startFunction]
	switch {
	case !ok:
		return fmt.Errorf("it exports no function %s: build it as a program for WASI preview 1 (GOOS=wasip1, wasm32-wasip1), not as a library", startFunction)
	case len(start.ParamTypes())+len(start.ResultTypes()) > 0:
		return fmt.Errorf("its function %s has parameters or results; it must have none", startFunction)
	case m.ExportedMemories()[memoryName] == nil:
		return fmt.Errorf("it exports no memory with the name %q", memoryName)
	case len(m.ImportedMemories()) > 0:
		return errors.New("it imports a memory; it must have its own")
	}
	there := wasi.ExportedFunctionDefinitions()
	for _, f := range m.ImportedFunctions() {
		from, name, _ := f.Import()
		if from != wasi_snapshot_preview1.ModuleName || there[name] == nil {
			return fmt.Errorf("it imports the function %.50q of %.50q; a reader may import functions of %s only", name, from, wasi_snapshot_preview1.ModuleName)
		}
	}
	return nil
}

// checkMemory returns why m cannot start with memory for at most limit bytes.
func (m *compiledModule) checkMemory(limit int64) error {
	if begins := int64(m.compiled.ExportedMemories()[memoryName].Min()) * pageSize; begins > limit {
		return fmt.Errorf("it begins with %d bytes of memory, and memory limits it to %d", begins, limit)
	}
	return nil
}
