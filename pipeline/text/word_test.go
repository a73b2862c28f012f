package text

import (
	"strings"
	"testing"
)

func TestWholeWords(t *testing.T) {
	for in, want := range map[string]string{ // the text in brackets
		"그는 한[국]어를 배운다":          "한국어를",
		"그는 [한]국어, 그리고":          "한국어",
		"[3]개월 동안":               "3개월",
		"de l'[eau] pure":        "l'eau",
		"de [l]’eau pure":        "l’eau",
		"rock '[n]' roll":        "n",
		"the [stock].":           "stock",
		"ภา[ษ]า":                 "ษ",
		"東[京]都":                  "京",
		"Price &[m]; and more":   "&m;",
		"Price &[m; and] more":   "&m; and",
		"Price & [m]; and more":  "m",
		"AT&[T]":                 "T",
		"personnel.[Pour] l'aut": "Pour",
		"[]":                     "",
	} {
		from, last := strings.Index(in, "["), strings.LastIndex(in, "]")
		s := in[:from] + in[from+1:last] + in[last+1:]
		if a, b := WholeWords(s, from, last-1); s[a:b] != want {
			t.Errorf("%s: got %q, want %q", in, s[a:b], want)
		}
	}
}
