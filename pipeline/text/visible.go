package text

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Visible returns what a reader sees of content, a pipeline.Text's Content: the blocks,
// joined by "\n", without marks. Blocks without text are left out.
func Visible(content string) string {
	var b strings.Builder
	b.Grow(len(content))
	eachBlock(content, func(start, end int) {
		s := content[start:end]
		if strings.TrimSpace(s) == "" {
			return
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(s)
	}, func(byte) {})
	return b.String()
}

// Hash is the hash of a text by which versions are told apart, whatever its marks:
// SHA-256 of Visible(content), in hexadecimal.
func Hash(content string) string {
	h := sha256.Sum256([]byte(Visible(content)))
	return hex.EncodeToString(h[:])
}
