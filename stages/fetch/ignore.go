package fetch

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/readers/blocks"
)

const borders = string(pipeline.BlockEnd) + string(pipeline.ItemStart) + string(pipeline.ItemEnd)

// ignore blanks what matches one of patterns in the blocks of content, one block at a
// time, and drops the blocks that are blank then.
func ignore(content string, patterns []string) (string, error) {
	if len(patterns) == 0 {
		return content, nil
	}
	res := make([]*regexp.Regexp, len(patterns))
	for i, p := range patterns {
		re, err := regexp.Compile(p)
		if err != nil {
			return "", &pipeline.FetchError{Class: pipeline.FailUnreadable, Reason: fmt.Sprintf("ignore: %v", err)}
		}
		res[i] = re
	}
	var b blocks.Builder
	for content != "" {
		end := strings.IndexAny(content, borders)
		if end < 0 {
			end = len(content)
		}
		block := content[:end]
		for _, re := range res {
			block = re.ReplaceAllLiteralString(block, " ")
		}
		b.Text([]byte(block))
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
