package match

import (
	"strings"

	"github.com/vokter/vokter/pipeline/flow"
)

// counterpart returns what stands in place of the text in the other version. All subscriptions share it.
func (h *hit) counterpart() string {
	if h.other == nil {
		other := h.findCounterpart()
		h.other = &other
	}
	return *h.other
}

// findCounterpart returns the text with each edit in it undone, or made. It is empty if an edit reaches out of the text,
// or has nothing on the other side.
func (h *hit) findCounterpart() string {
	h.computeText()
	if len(h.text) != h.to-h.from {
		return "" // the words alone are shown
	}
	var other strings.Builder
	at, end := h.w.Offset+h.from, h.w.Offset+h.to
	for i := range h.of.Differences {
		d := &h.of.Differences[i]
		if d.Event != eventOfSide[h.side] || d.Offset+len(d.Text) <= at || d.Offset >= end {
			continue
		}
		replaced := otherSide(h.of.Differences, d)
		if d.Offset < at || d.Offset+len(d.Text) > end || replaced == "" {
			return ""
		}
		from := at - h.w.Offset
		other.WriteString(h.w.Text[from:d.Offset-h.w.Offset] + replaced)
		at = d.Offset + len(d.Text)
	}
	if other.Len() == 0 {
		return ""
	}
	other.WriteString(h.w.Text[at-h.w.Offset : h.to])
	if other.Len() > maxTextBytes {
		return ""
	}
	return other.String()
}

// otherSide returns what was added in place of d, or removed; empty if that is nothing, or stands in several places.
func otherSide(all []flow.Difference, d *flow.Difference) (text string) {
	for i := range all {
		switch o := &all[i]; {
		case d.Edit == 0 || o.Edit != d.Edit || o.Event == d.Event:
		case text != "":
			return ""
		default:
			text = o.Text
		}
	}
	return text
}
