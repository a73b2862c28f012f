package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
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

// verificationRequest is the body that asks a receiver to prove itself.
type verificationRequest struct {
	Type      string `json:"type"`
	Challenge string `json:"challenge"`
}

// ensureVerified asks the receiver to confirm that it wants notifications. It does not ask if the receiver
// has confirmed in this process, or if the note of the document, which an earlier process may have
// written, says so. Its errors are retried, unless the receiver is gone or must not be reached.
func (w *Webhook) ensureVerified(ctx context.Context) error {
	attempt, proof := pipeline.AttemptFrom(ctx), w.verificationNote()
	if attempt.Note() == proof {
		w.verified.Store(true)
		return nil
	}
	if !w.verified.Load() {
		if err := w.sendChallenge(ctx); err != nil {
			return fmt.Errorf("the receiver did not prove itself: %w", err)
		}
		w.verified.Store(true)
	}
	attempt.SetNote(proof)
	return nil
}

// verificationNote is the note of a receiver that proved itself. It depends on the URL: a new URL has to be
// proved again.
func (w *Webhook) verificationNote() string {
	sum := sha256.Sum256([]byte(w.url.String()))
	return "verified " + base64.RawURLEncoding.EncodeToString(sum[:])
}

// sendChallenge sends a challenge. It returns an error unless the receiver sends it back.
func (w *Webhook) sendChallenge(ctx context.Context) error {
	challenge := rand.Text()
	body, err := encodeJSON(verificationRequest{"verification", challenge})
	if err != nil {
		return err
	}
	asking := w.sender
	asking.BodyDecides = true
	answer, err := w.send(ctx, asking, "verification_"+challenge, http.Header{"Content-Type": {mediaJSON}}, body)
	switch {
	case failure.IsAmbiguous(err):
		return errors.Unwrap(err) // whatever arrived, it was no notification
	case err != nil:
		return err
	}
	err = answer.Err()
	if class, after := failure.ClassOf(err); class == failure.ClassRefused {
		return failure.RetryAfter(err, after) // the question was refused, not the notification
	}
	if err == nil {
		err = checkChallenge(answer.Body, challenge)
	}
	return err
}

// checkChallenge returns nil if the body of an answer is the challenge alone. A body with more of the
// request may come from a server that echoes every request.
func checkChallenge(body []byte, challenge string) error {
	text := strings.TrimSpace(string(body))
	var said map[string]any
	switch err := json.Unmarshal(body, &said); {
	case text == challenge:
		return nil
	case err != nil || said["challenge"] != challenge:
		return errors.New("its answer is not the challenge; answer {\"type\":\"verification\",\"challenge\":C} with C")
	case said["type"] != nil:
		return errors.New("its answer is the whole request, which proves nothing; answer with the challenge alone")
	}
	return nil
}
