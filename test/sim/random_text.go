package sim

import (
	"math/rand/v2"
	"strings"

	"github.com/vokter/vokter/test/oracle"
)

// Words of which pages are made. What is a token of them is beyond doubt, and among
// them only stopWords are stop words of English.
var (
	fillerWords = strings.Fields(`amber anchor apple arrow autumn barn basket beacon bell bench birch blanket boat bonfire
		bottle branch bread bridge bronze brook bucket butter button cabin camel candle canoe canvas carbon carpet castle
		cedar cellar chalk chapel cherry chimney cinder circus clay clover coal cobalt comet copper coral corn cotton crater
		cricket crystal curtain dagger daisy desert diamond dolphin donkey dragon drum eagle ember emerald engine falcon
		feather fern ferry fiddle flame flint forest fossil fountain garden garlic ginger glacier granite grape gravel
		hammer harbor harp hazel helmet heron hollow honey horizon hornet island ivory jacket jasmine jungle kettle
		kitten ladder lantern lemon lettuce lilac linen lizard lobster locket magnet mango maple marble meadow melon
		mercury mirror monkey mountain mustard nectar needle nickel oak oasis ocean olive onion orbit orchard otter
		oyster paddle palace panther parrot pebble pepper pewter pigeon pillow planet plum pocket pollen poplar potato
		prairie pumpkin quartz rabbit radish raven ribbon river rocket saddle salmon sapphire satin sculptor shadow silver
		sparrow spider spruce squid statue summit sunset swan tavern temple thistle thunder tiger timber tulip tunnel
		turnip valley velvet violin walnut willow window winter yarrow zephyr zinc 2019 1984 42 365 1000 777`)
	keywordParts = strings.Fields(`argus Argus zeus Zeus stock stock price prices cat cats god gods God house houses walk walked
		walking café cafe Café Zürich Zurich 100 Panoptes ✔ ✘ $100 €`)
	stopWords = strings.Fields(`the of a and in is to who out`)
)

// keywords are what clients ask for.
var keywords = []string{
	"argus", "Argus", "zeus", "stock", "out of stock", "in stock", "price", "cat", "cats", "house of the gods", "god house",
	"walk", "walking", "café", "cafe", "Zürich", "100", "argus panoptes", "the who", "is", "stock price", "zeus, argus!",
	"the house", "walking cats", "meadow", "silver river", "✔", "$100", "price ✔",
}

// newEnglish is what the oracle knows of English. It knows the stems of the words above
// that have one; stem is that of the Snowball project, as the product's.
func newEnglish(stem func(string) string) *oracle.Language {
	l := &oracle.Language{Stop: make(map[string]bool), Stem: stem}
	for _, w := range stopWords {
		l.Stop[w] = true
	}
	return l
}

func pick[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }

// randomWord returns a word; rarely one in capitals.
func randomWord(r *rand.Rand) string {
	w := pick(r, fillerWords)
	switch n := r.IntN(100); {
	case n < 16:
		w = pick(r, keywordParts)
	case n < 32:
		w = pick(r, stopWords)
	}
	switch r.IntN(60) {
	case 0:
		w = strings.ToUpper(w)
	case 1:
		w = capitalize(w)
	}
	return w
}

func capitalize(w string) string {
	for _, c := range w {
		s := string(c)
		return strings.ToUpper(s) + w[len(s):]
	}
	return w
}

// randomPhrase returns n words with some punctuation; now and then a whole keyword is among them.
func randomPhrase(r *rand.Rand, n int) string {
	var ws []string
	for len(ws) < n {
		if r.IntN(10) == 0 {
			ws = append(ws, strings.Fields(pick(r, keywords))...)
			continue
		}
		ws = append(ws, randomWord(r))
		switch r.IntN(24) {
		case 0:
			ws[len(ws)-1] += ","
		case 1:
			ws[len(ws)-1] = "(" + ws[len(ws)-1] + ")"
		}
	}
	return strings.Join(ws, " ")
}

// randomParagraph returns a paragraph.
func randomParagraph(r *rand.Rand) string {
	var ss []string
	for range 1 + r.IntN(3) {
		ss = append(ss, capitalize(randomPhrase(r, 4+r.IntN(8)))+pick(r, []string{".", ".", ".", "!", "?", " ..."}))
	}
	return strings.Join(ss, " ")
}
