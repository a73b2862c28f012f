package contract

import (
	"os"
	"regexp"
	"testing"

	"github.com/vokter/vokter/pipeline/flow"
)

// TestTheTutorialShowsRealBodies: the JSON in docs/consume.md is as the schemas say, and
// every type that it names is public.
func TestTheTutorialShowsRealBodies(t *testing.T) {
	text, err := os.ReadFile("../../docs/consume.md")
	if err != nil {
		t.Fatal(err)
	}
	all := schemas(t)
	blocks := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllSubmatch(text, -1)
	want := []string{flow.TypeChange, flow.TypeCurrent, flow.TypeHealth}
	if len(blocks) != len(want) {
		t.Fatalf("%d blocks of JSON, want %d", len(blocks), len(want))
	}
	for i, typ := range want {
		if err := all[typ].Validate(instance(t, blocks[i][1])); err != nil {
			t.Errorf("%s: %v", typ, err)
		}
	}
	for _, typ := range regexp.MustCompile(`vokter\.[a-z]+\.v1`).FindAllString(string(text), -1) {
		if bodies[typ] == nil && typ != flow.TypeCheckNow && typ != flow.TypePage && typ != flow.TypeNotification {
			t.Errorf("%s is not public", typ)
		}
	}
}
