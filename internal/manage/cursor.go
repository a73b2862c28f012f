package manage

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"

	"github.com/danielgtaylor/huma/v2"
)

// Part selects a part of a list.
type Part struct {
	Cursor string `query:"cursor" maxLength:"16384" doc:"The field next of the part before. It is for the token and the list that got it, until the process ends. Without it the list begins."`
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"How many entries are returned at most."`
}

// cursors seals the places where the parts of lists begin. Such a place may be the page of another client, of which a
// caller must learn nothing; nor may a caller begin a list at a place of his choice.
type cursors struct{ cipher.AEAD }

// newCursors returns cursors with a key of their own.
func newCursors() cursors {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	block, err := aes.NewCipher(key)
	if err == nil {
		var aead cipher.AEAD
		if aead, err = cipher.NewGCMWithRandomNonce(block); err == nil {
			return cursors{aead}
		}
	}
	panic("manage: " + err.Error()) // the length of the key is right
}

// cursorBlock is the size to which the places are padded, in bytes, so that the length of a cursor tells little.
const cursorBlock = 256

// seal returns the cursor of the part of list behind key, for the caller of ctx. It is empty for an empty key.
func (c cursors) seal(ctx context.Context, list, key string) string {
	if key == "" {
		return ""
	}
	padded := append([]byte(key), 1)
	for len(padded)%cursorBlock != 0 {
		padded = append(padded, 0)
	}
	return base64.RawURLEncoding.EncodeToString(c.Seal(nil, nil, padded, cursorOwner(ctx, list)))
}

// open returns the key that cursor was sealed with, for the same list and caller.
func (c cursors) open(ctx context.Context, list, cursor string) (key string, err error) {
	if cursor == "" {
		return "", nil
	}
	sealed, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		var padded []byte
		if padded, err = c.Open(nil, nil, sealed, cursorOwner(ctx, list)); err == nil {
			end := len(padded) - 1
			for end > 0 && padded[end] == 0 {
				end--
			}
			return string(padded[:end]), nil
		}
	}
	return "", validationProblem(&huma.ErrorDetail{
		Message: "is not a cursor that this process returned for this list to this token; begin without one", Location: "query.cursor", Value: cursor,
	})
}

// cursorOwner names a list and the token of the caller.
func cursorOwner(ctx context.Context, list string) []byte {
	return []byte(list + "\x00" + callerOf(ctx).Hash)
}
