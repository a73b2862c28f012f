package render

import (
	"os"
	"strings"
	"testing"
)

// What a template may say is listed for those who write one.
func TestEverythingIsDocumented(t *testing.T) {
	b, err := os.ReadFile("../../docs/sinks/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, doc, _ := strings.Cut(string(b), "## Templates")
	all := samples()
	names := make(map[string]bool)
	for k := range data(all[3].notification) {
		names[k] = true
	}
	for k := range health(all[3].notification.Health) {
		names[k] = true
	}
	diffs := diffs(all[2].notification.Diffs)
	for k := range diffs[0] {
		names[k] = true
	}
	for k := range items(all[2].notification.Items, diffs)[0] {
		names[k] = true
	}
	for _, s := range all {
		if !strings.Contains(doc, "`"+s.notification.Type+"`") {
			t.Errorf("the type %s is not documented", s.notification.Type)
		}
	}
	for name := range names {
		if !strings.Contains(doc, "`."+name+"`") {
			t.Errorf(".%s is not documented", name)
		}
	}
	for _, f := range functionNames() {
		comparison := strings.Contains(" eq ne lt le gt ge ", " "+f+" ")
		if !comparison && !strings.Contains(doc, "`"+f+"`") && !strings.Contains(doc, "`"+f+" ") {
			t.Errorf("the function %s is not documented", f)
		}
	}
}
