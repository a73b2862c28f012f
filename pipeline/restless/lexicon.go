package restless

import "strings"

// maxWord is the length of the longest word of a lexicon in bytes.
const maxWord = 12

// integer is a meaning. Zero is that of words which a lexicon does not have.
type integer interface{ ~uint8 | ~int64 }

// lexicon says what words mean, in whichever case.
type lexicon[T integer] struct {
	meanings map[string]T
	// begins holds the first bytes and the lengths of the words: most words are none of them.
	begins [256][maxWord + 1]bool
}

// lexiconOf returns the lexicon of words in small letters, by their meaning. The meanings of a word are added up.
func lexiconOf[T integer](words map[T]string) *lexicon[T] {
	l := &lexicon[T]{meanings: make(map[string]T)}
	for meaning, list := range words {
		for _, w := range strings.Fields(list) {
			l.meanings[w] |= meaning
			l.begins[w[0]][len(w)] = true
			l.begins[strings.ToUpper(w)[0]][len(w)] = true
		}
	}
	return l
}

// of returns what s means.
func (l *lexicon[T]) of(s string) (meaning T) {
	if s == "" || len(s) > maxWord || !l.begins[s[0]][len(s)] {
		return meaning
	}
	return l.meanings[strings.ToLower(s)]
}
