package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"
)

// key is the key of an HMAC, never empty.
type key []byte

// parseKey reads a secret. Its errors do not quote it.
func parseKey(secret string) (key, error) {
	encoded, ok := strings.CutPrefix(secret, "whsec_")
	if !ok {
		return key(secret), nil
	}
	k, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		k, err = base64.RawStdEncoding.DecodeString(encoded)
	}
	if err != nil {
		return nil, errors.New("what follows whsec_ is not base64")
	}
	if len(k) == 0 {
		return nil, errors.New("nothing follows whsec_")
	}
	return k, nil
}

// signatures returns the value of the header webhook-signature: for each key
// "v1,BASE64", separated by blanks.
func signatures(keys []key, id string, at time.Time, body []byte) string {
	list := make([]string, len(keys))
	for i, k := range keys {
		mac := hmac.New(sha256.New, k)
		fmt.Fprintf(mac, "%s.%d.", id, at.Unix())
		mac.Write(body)
		list[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(list, " ")
}
