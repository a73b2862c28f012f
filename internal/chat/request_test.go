package chat

import "testing"

func TestEncoded(t *testing.T) {
	for _, s := range []string{"", "plain <&> ä😀", "\"\\/\n\r\t\b\f\x00\x1b\x7f\u0085", "\u2028\u2029\u202a", "\uFFFD"} {
		if got, want := Encoded(s), len(JSON(s))-2; got != want {
			t.Errorf("%q: got %d, want %d", s, got, want)
		}
	}
}
