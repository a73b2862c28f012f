// Package text is how Vokter reads a text: blocks, tokens, languages, stemmers and
// stop words. Index, diff and match share it, so that they agree on what a word is.
//
// Tokens are the words of Unicode's UAX #29 with a few rules of our own (see Tokens).
// They do not depend on the language of the text: only what a token is compared as
// does, and that is a Normalizer's business.
package text
