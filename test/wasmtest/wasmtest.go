// Package wasmtest assembles small WebAssembly modules, so that tests of readers need no compiler.
package wasmtest

import "encoding/binary"

// Instructions.
const (
	Unreachable = "\x00"
	Forever     = "\x03\x40\x0c\x00\x0b" // loop
	Recurse     = "\x10\x03"             // the program calls itself
	// GrowMemory asks for 100 pages of memory, and crashes where it does not get them.
	GrowMemory = "\x41\xe4\x00\x40\x00\x41\x00\x48\x04\x40\x00\x0b"
	// GrowTable asks for a million elements in a table, and crashes where it gets them.
	GrowTable = "\xd0\x70\x41\xc0\x84\x3d\xfc\x0f\x00\x41\x7f\x46\x45\x04\x40\x00\x0b"
)

// Functions that a Program imports, by their number.
const (
	fdRead = iota
	fdWrite
	procExit
)

// Program returns a program that runs code, in whose memory text stands for Write.
func Program(code, text string) []byte { return assemble(code, text, 1+len(text)>>16, "_start") }

// Large returns a program that does nothing and begins with this many pages of memory.
func Large(pages int) []byte { return assemble("", "", pages, "_start") }

// Library returns a module that is no program.
func Library() []byte { return assemble("", "", 1, "read") }

// Write are instructions that write text, the length of a Program's, to the file descriptor fd.
func Write(fd byte) string { return call(fdWrite, fd) }

// Copy are instructions that read at most 1 KB of standard input and write it to standard output.
func Copy() string {
	// The length that was read becomes that of what is written.
	return call(fdRead, 0) + "\x41\x04\x41\x08\x28\x02\x00\x36\x02\x00" + call(fdWrite, 1)
}

// call calls function with fd, one buffer that address 0 describes, and address 8 for a length.
func call(function, fd byte) string {
	return "\x41" + string([]byte{fd}) + "\x41\x00\x41\x01\x41\x08\x10" + string([]byte{function}) + "\x1a"
}

// Exit are instructions that end the program with code, below 64.
func Exit(code byte) string { return "\x41" + string([]byte{code}) + "\x10" + string([]byte{procExit}) }

// Repeat are instructions that repeat code for ever.
func Repeat(code string) string { return "\x03\x40" + code + "\x0c\x00\x0b" }

// buffer is where the text stands in memory, behind its address and length and room for a result.
const buffer = 16

func assemble(code, text string, pages int, export string) []byte {
	describe := binary.LittleEndian.AppendUint32(nil, buffer)
	length := max(len(text), 1)
	if text == "" {
		length = 1 << 10
	}
	describe = binary.LittleEndian.AppendUint32(describe, uint32(length))
	describe = append(describe, make([]byte, buffer-len(describe))...)
	const wasi = "\x16wasi_snapshot_preview1"
	module := "\x00asm\x01\x00\x00\x00"
	module += section(1, "\x03", "\x60\x00\x00", "\x60\x04\x7f\x7f\x7f\x7f\x01\x7f", "\x60\x01\x7f\x00")
	module += section(2, "\x03", wasi+"\x07fd_read\x00\x01", wasi+"\x08fd_write\x00\x01", wasi+"\x09proc_exit\x00\x02")
	module += section(3, "\x01\x00")             // a function without parameters
	module += section(4, "\x01\x70\x00\x01")     // a table of one element that may grow
	module += section(5, "\x01\x00"+uleb(pages)) // a memory that may grow
	module += section(7, "\x02", sized("memory")+"\x02\x00", sized(export)+"\x00\x03")
	module += section(10, "\x01", sized("\x00"+code+"\x0b"))
	module += section(11, "\x01\x00\x41\x00\x0b", sized(string(describe)+text))
	return []byte(module)
}

func section(id byte, parts ...string) string {
	content := ""
	for _, p := range parts {
		content += p
	}
	return string([]byte{id}) + sized(content)
}

func sized(s string) string { return uleb(len(s)) + s }

func uleb(n int) string { return string(binary.AppendUvarint(nil, uint64(n))) }
