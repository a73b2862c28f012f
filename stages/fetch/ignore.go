package fetch

import (
	"context"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/readers/blocks"
)

const borders = string(pipeline.BlockEnd) + string(pipeline.ItemStart) + string(pipeline.ItemEnd)

// pieceSize is how much of a block a regular expression is matched against at once, in bytes.
// To find one match takes at most this times 1000 steps, the largest program of a pattern, about a second; between
// two matches the deadline is looked at.
const pieceSize = 32 << 10

// ignore blanks what matches one of patterns in the blocks of content, one block at a time, and
// drops the blocks that are blank then. A block longer than pieceSize is taken in pieces. It
// returns ctx's error if that is done first.
func ignore(ctx context.Context, content string, patterns []string) (string, error) {
	if len(patterns) == 0 {
		return content, nil
	}
	res, err := pipeline.View{Ignore: patterns}.Patterns()
	if err != nil {
		return "", &pipeline.FetchError{Class: pipeline.FailUnreadable, Reason: err.Error()}
	}
	var b blocks.Builder
	for content != "" {
		end := strings.IndexAny(content, borders)
		if end < 0 {
			end = len(content)
		}
		for block := content[:end]; block != ""; {
			piece := block[:pieceEnd(block)]
			block = block[len(piece):]
			for _, re := range res {
				if piece, err = blank(ctx, re, piece); err != nil {
					return "", err
				}
			}
			b.Text([]byte(piece))
		}
		if end == len(content) {
			break
		}
		switch content[end] {
		case pipeline.ItemStart:
			b.ItemStart()
		case pipeline.ItemEnd:
			b.ItemEnd()
		default:
			b.Break()
		}
		content = content[end+1:]
	}
	return b.Content(), nil
}

// pieceEnd returns where the first piece of block ends: at the last space that fits, if any.
func pieceEnd(block string) int {
	if len(block) <= pieceSize {
		return len(block)
	}
	if i := strings.LastIndexByte(block[:pieceSize], ' '); i > 0 {
		return i
	}
	end := pieceSize
	for end > pieceSize-utf8.UTFMax && !utf8.RuneStart(block[end]) {
		end--
	}
	return end
}

// outOfTime breaks off what regexp does, which knows no deadline.
type outOfTime struct{}

// blank replaces what re matches in s by a space.
func blank(ctx context.Context, re *regexp.Regexp, s string) (out string, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case outOfTime:
			err = ctx.Err()
		default:
			panic(r)
		}
	}()
	return re.ReplaceAllStringFunc(s, func(string) string {
		if ctx.Err() != nil {
			panic(outOfTime{})
		}
		return " "
	}), nil
}
