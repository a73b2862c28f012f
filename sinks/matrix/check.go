package matrix

import (
	"context"
	"errors"
	"net/http"

	"github.com/vokter/vokter/internal/outbound"
)

// Check says whether the room can be used: the account is in there, and the room is not
// encrypted, unless that is allowed. It reads the event m.room.encryption of the room's state,
// which an encrypted room has and another one has not.
func (s *Matrix) Check(ctx context.Context) error {
	a, err := s.endpoint.Do(ctx, http.MethodGet, s.inRoom("state/m.room.encryption"), s.header, nil)
	if err != nil {
		return err
	}
	said := outbound.Read[answer](a.Body)
	switch {
	case a.Status == http.StatusNotFound && said.Code == "M_NOT_FOUND":
		return nil
	case a.Err() != nil:
		return s.refusal(a, said)
	case s.allowUnencrypted:
		return nil
	}
	return &outbound.Advised{
		Err:    errors.New("the room is encrypted, and notifications would be sent to it without encryption"),
		Advice: "write the ID of a room that is not encrypted, or permit this with allow_unencrypted: true",
	}
}
