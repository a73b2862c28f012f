package fetch

import (
	"context"
	"regexp"
	"strings"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/readers/blocks"
	"github.com/vokter/vokter/stages/fetch/readers/selector"
)

// compileIgnore returns the regular expressions of View.Ignore.
func compileIgnore(patterns []string) ([]*regexp.Regexp, error) {
	res, err := pipeline.View{Ignore: patterns}.Patterns()
	if err != nil {
		return nil, &pipeline.FetchError{Class: pipeline.FailUnreadable, Reason: err.Error()}
	}
	return res, nil
}

// blankIgnored blanks what matches one of res in the blocks of content, one block at a time, and drops the
// blocks that are blank then. It returns ctx's error if that is done first.
func blankIgnored(ctx context.Context, content string, keys []pipeline.Key, res []*regexp.Regexp) (string, []pipeline.Key, error) {
	if len(res) == 0 {
		return content, keys, nil
	}
	var err error
	var b blocks.Builder
	for content != "" {
		end := strings.IndexAny(content, blocks.Borders)
		if end < 0 {
			end = len(content)
		}
		block := content[:end]
		for _, re := range res {
			if block, err = selector.Blank(ctx, re, block); err != nil {
				return "", nil, err
			}
		}
		b.Text([]byte(block))
		if end == len(content) {
			break
		}
		b.Border(content[end])
		if content[end] == pipeline.ItemStart && len(keys) > 0 {
			b.SetKey(keys[0])
			keys = keys[1:]
		}
		content = content[end+1:]
	}
	blanked := b.Content()
	return blanked, b.Keys(), nil
}

// Ignored returns content, a text of a document, with what matches one of the regular expressions blanked, as
// View.Ignore does.
func Ignored(ctx context.Context, content string, patterns ...string) (string, error) {
	res, err := compileIgnore(patterns)
	if err != nil {
		return "", err
	}
	blanked, _, err := blankIgnored(ctx, content, nil, res)
	return blanked, err
}
