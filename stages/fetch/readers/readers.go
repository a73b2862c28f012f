// Package readers lists the readers that are built in.
package readers

import (
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/readers/calendar"
	"github.com/vokter/vokter/stages/fetch/readers/csv"
	"github.com/vokter/vokter/stages/fetch/readers/html"
	"github.com/vokter/vokter/stages/fetch/readers/json"
	"github.com/vokter/vokter/stages/fetch/readers/plain"
	"github.com/vokter/vokter/stages/fetch/readers/xml"
)

// Builtin returns the readers that need no configuration, no other program and no large library. A program gives others,
// such as markdown.New(), to vokter.Config.Readers.
func Builtin() []pipeline.Reader {
	return []pipeline.Reader{html.New(), plain.New(), xml.New(), json.New(), csv.New(), calendar.New()}
}
