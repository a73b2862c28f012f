package flow

import "errors"

// outcomeHeader is an outcome as its header carries it. Frames tells what the message's body
// holds; without it the body is Packed alone.
type outcomeHeader struct {
	Outcome
	Frames *frames `json:"frames,omitempty"`
}

// frames say how the body of an outcome's message is divided, in bytes: Packed, then what
// Body and Rebased hold packed. Those are named here without that.
type frames struct {
	Packed      int      `json:"packed"`
	Body        *Body    `json:"body,omitempty"`
	BodySize    int      `json:"body_size,omitempty"`
	Rebased     *Rebased `json:"rebased,omitempty"`
	RebasedSize int      `json:"rebased_size,omitempty"`
}

// frames returns how o's message is divided, or nil where its body is Packed alone.
func (o Outcome) frames() *frames {
	if o.Body == nil && o.Rebased == nil {
		return nil
	}
	f := &frames{Packed: len(o.Packed)}
	if o.Body != nil {
		b := *o.Body
		f.Body, f.BodySize, b.Packed = &b, len(b.Packed), nil
	}
	if o.Rebased != nil {
		r := *o.Rebased
		f.Rebased, f.RebasedSize, r.Packed = &r, len(r.Packed), nil
	}
	return f
}

// joined returns the body of o's message, and o with all that it holds packed in there.
func (o Outcome) joined() (Outcome, []byte) {
	f := o.frames()
	if f == nil {
		return o, o.Packed
	}
	body := make([]byte, 0, f.Packed+f.BodySize+f.RebasedSize)
	body = append(body, o.Packed...)
	if o.Body != nil {
		body = append(body, o.Body.Packed...)
	}
	if o.Rebased != nil {
		body = append(body, o.Rebased.Packed...)
	}
	o, err := outcomeHeader{o, f}.cut(body)
	if err != nil {
		panic("pipeline: " + err.Error()) // the sizes were just added up
	}
	return o, body
}

var errFrames = errors.New("its body is not as long as its header says")

// cut returns the outcome with what body holds. It shares body's memory.
func (h outcomeHeader) cut(body []byte) (Outcome, error) {
	o, f := h.Outcome, h.Frames
	if f == nil {
		o.Packed = body
		return o, nil
	}
	rest, bad := body, false
	take := func(n int) []byte {
		if bad = bad || n < 0 || n > len(rest); bad || n == 0 {
			return nil
		}
		part := rest[:n:n]
		rest = rest[n:]
		return part
	}
	o.Packed, o.Body, o.Rebased = take(f.Packed), f.Body, f.Rebased
	bodyPacked, rebasedPacked := take(f.BodySize), take(f.RebasedSize)
	if o.Body != nil {
		o.Body.Packed = bodyPacked
	}
	if o.Rebased != nil {
		o.Rebased.Packed = rebasedPacked
	}
	if bad || len(rest) > 0 {
		return Outcome{}, errFrames
	}
	return o, nil
}
