package pipeline

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"strconv"
)

var idEncoding = base32.HexEncoding.WithPadding(base32.NoPadding)

// DeriveID hashes parts into an ID of 26 characters of [0-9A-V] (128 bits). Equal
// parts give equal IDs, and no two lists of parts are confused by where one ends.
func DeriveID(parts ...string) string {
	h := sha256.New()
	var n [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	return idEncoding.EncodeToString(h.Sum(nil)[:16])
}

// ChangeID is the ID of the change that made version n of a document.
func ChangeID(document, incarnation string, n uint64) string {
	return DeriveID("change", document, incarnation, strconv.FormatUint(n, 10))
}

// NotificationID is the ID of what a change tells one subscription at one receiver.
func NotificationID(change, subscriptionIncarnation, receiver string) string {
	return DeriveID("notification", change, subscriptionIncarnation, receiver)
}
