package flow

import (
	"crypto/sha256"
	"encoding/hex"
)

// TraceParent returns the W3C trace context of a trace that begins with the message
// id: version 00, sampled, its IDs derived from id.
func TraceParent(id string) string {
	sum := sha256.Sum256([]byte(id))
	return "00-" + hex.EncodeToString(sum[:16]) + "-" + hex.EncodeToString(sum[16:24]) + "-01"
}
