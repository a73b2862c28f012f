package flow

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"strconv"
	"strings"
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

// ChangeID is the ID of the change that made version n of a document. Lineage is the store
// in which it did: a copy of a store that goes on makes other changes under the same numbers.
func ChangeID(document, incarnation, lineage string, n uint64) string {
	return DeriveID("change", document, incarnation, lineage, strconv.FormatUint(n, 10))
}

// TimeoutID is the ID of the notification that tells a subscription at one receiver that
// this life of its page was given up. A life has one such end.
func TimeoutID(page, incarnation, lineage, subscriptionIncarnation, receiver string) string {
	return DeriveID("timeout", page, incarnation, lineage, subscriptionIncarnation, receiver)
}

// Lineage returns the part of a Message.Position that names its store.
func Lineage(position string) string {
	store, _, _ := strings.Cut(position, "/")
	return store
}

// NotificationID is the ID of what a change tells one subscription at one receiver.
func NotificationID(change, subscriptionIncarnation, receiver string) string {
	return DeriveID("notification", change, subscriptionIncarnation, receiver)
}
