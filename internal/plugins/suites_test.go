package plugins_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// suiteCall matches a call of a conformance suite. Every kind of sink makes one in its tests.
var suiteCall = regexp.MustCompile(`pipelinetest\.Test(HTTP)?Sink\(`)

// sinks is the folder that has one of each kind.
const sinks = "../../sinks"

// TestEverySinkRunsItsSuite looks into the folders of the sinks.
func TestEverySinkRunsItsSuite(t *testing.T) {
	entries, err := os.ReadDir(sinks)
	if err != nil {
		t.Fatal(err)
	}
	kinds := 0
	for _, e := range entries {
		if !e.IsDir() || e.Name() == "testdata" || e.Name() == "route" || e.Name() == "inbox" { // they deliver nothing
			continue
		}
		kinds++
		files, err := filepath.Glob(filepath.Join(sinks, e.Name(), "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		runs := false
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			runs = runs || suiteCall.Match(b)
		}
		if !runs {
			t.Errorf("the sink %s does not run the suite: call pipelinetest.TestHTTPSink, or TestSink where it does not talk HTTP", e.Name())
		}
	}
	if kinds < 2 {
		t.Errorf("%d kinds of sinks were found", kinds)
	}
}
