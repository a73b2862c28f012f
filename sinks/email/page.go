package email

import (
	_ "embed"
	"html/template"
	"strings"

	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
)

//go:embed page.tmpl
var pageSource string

var pageTemplate = template.Must(template.New("page").Parse(pageSource))

// page is the HTML part. All that is of a page goes through html/template, and the one link
// shows where it leads.
func page(l render.Message, n pipeline.Notification) (string, error) {
	var b strings.Builder
	err := pageTemplate.Execute(&b, struct {
		render.Message
		Shown, Footer string
	}{l, render.Page(l.URL), footer(n)})
	return b.String(), err
}
