package vokter

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/vokter/vokter"

// direction says which packages of this module a package may import: the longest
// prefix that fits decides. Imports of test files do not count.
var direction = []struct {
	pkg       string
	may       []string
	watermill bool // may import Watermill
}{
	{pkg: "", may: []string{"inspect", "internal/inspector", "pipeline/flow", "pipeline", "pipeline/local", "pipeline/registry", "internal/store", "pipeline/text", "stages", "sources/file", "sources/http", "internal/delivery", "internal/inflight", "internal/memory", "internal/nearest", "internal/span"}, watermill: true},
	{pkg: "voktertest", may: []string{"", "pipeline", "pipeline/pageurl"}},
	{pkg: "inspect", may: []string{"pipeline", "pipeline/flow", "pipeline/restless", "pipeline/text"}},
	{pkg: "inspect/client", may: []string{"inspect", "pipeline", "pipeline/flow"}},
	{pkg: "internal/inspector", may: []string{"inspect", "internal/delivery", "internal/htmltree", "pipeline", "pipeline/flow", "pipeline/restless", "pipeline/text", "stages", "stages/fetch"}},
	{pkg: "inspect/metrics", may: []string{"pipeline/flow"}},
	{pkg: "pipeline", may: []string{"pipeline/pageurl"}},
	{pkg: "pipeline/failure", may: nil},
	{pkg: "pipeline/pageurl", may: nil},
	{pkg: "pipeline/flow", may: []string{"pipeline", "internal/stored"}, watermill: true},
	{pkg: "pipeline/text", may: []string{"pipeline"}},
	{pkg: "pipeline/restless", may: []string{"pipeline"}},
	{pkg: "pipeline/schedule", may: []string{"pipeline"}},
	{pkg: "pipeline/registry", may: []string{"pipeline", "pipeline/flow"}},
	{pkg: "internal/store", may: []string{"pipeline/flow", "pipeline"}},
	{pkg: "pipeline/local", may: []string{"pipeline/flow", "internal/engine", "pipeline", "internal/store"}, watermill: true},
	{pkg: "pipeline/kafka", may: []string{"pipeline/flow", "internal/engine", "pipeline", "pipeline/kafka/cluster", "pipeline/kafka/internal/admin", "pipeline/kafka/internal/changelog", "pipeline/kafka/internal/client", "pipeline/registry", "internal/store"}, watermill: true},
	{pkg: "pipeline/kafka/cluster", may: []string{"docs/schemas", "pipeline", "pipeline/kafka/internal/client", "pipeline/registry"}},
	{pkg: "pipeline/kafka/internal/client", may: nil},
	{pkg: "pipeline/kafka/internal/changelog", may: []string{"internal/engine", "pipeline", "pipeline/kafka/internal/admin", "internal/store"}},
	{pkg: "pipeline/kafka/internal/admin", may: []string{"pipeline/flow", "pipeline/kafka/cluster", "pipeline/kafka/internal/client"}},
	{pkg: "pipeline/pipelinetest", may: []string{"pipeline/flow", "pipeline", "test/expiring", "test/testcert", "internal/store"}, watermill: true},
	{pkg: "stages", may: []string{"pipeline/flow", "pipeline", "pipeline/restless", "pipeline/text", "pipeline/schedule", "internal/stored"}},
	{pkg: "stages/fetch", may: []string{"pipeline/flow", "pipeline", "pipeline/text", "stages/fetch", "internal/htmltree", "internal/memory", "internal/span"}},
	{pkg: "internal/delivery", may: []string{"pipeline/flow", "pipeline", "pipeline/registry", "internal/memory", "internal/stored", "internal/span"}},
	{pkg: "config", may: []string{"pipeline/flow", "", "pipeline", "pipeline/text", "pipeline/text/stemmers", "pipeline/registry", "sources/browser", "sources/file", "sources/http", "pipeline/templates", "stages/fetch/readers/markdown", "stages/fetch/readers/selector", "internal/outbound", "internal/nearest", "internal/render"}},
	{pkg: "cmd", may: []string{"internal/cli"}},
	{pkg: "internal/plugins", may: []string{"pipeline/kafka", "pipeline/registry", "sinks", "sources", "stages/fetch/readers/wasm"}},
	{pkg: "internal/cli", may: []string{"inspect", "internal/inspector", "stages", "inspect/client", "inspect/metrics", "pipeline/flow", "", "config", "internal/rest", "internal/slackapp", "internal/manage", "internal/memory", "internal/store", "pipeline", "pipeline/kafka", "pipeline/kafka/cluster", "pipeline/local", "pipeline/registry", "sinks", "internal/plugins", "sources", "internal/outbound", "internal/render", "internal/nearest", "internal/reading", "internal/compare", "internal/migrate", "internal/web", "pipeline/text", "pipeline/text/stemmers", "stages/fetch/readers/markdown"}},
	{pkg: "internal/compare", may: []string{"inspect", "internal/render", "pipeline"}},
	{pkg: "internal/outbound", may: []string{"pipeline", "pipeline/registry", "internal/render"}},
	{pkg: "internal/render", may: []string{"pipeline", "pipeline/registry", "pipeline/text"}},
	{pkg: "pipeline/templates", may: []string{"internal/nearest", "internal/render", "pipeline", "pipeline/registry"}},
	{pkg: "internal/manage", may: []string{"config", "inspect", "inspect/client", "pipeline/flow", "", "pipeline"}},
	{pkg: "internal/engine", may: []string{"pipeline/flow", "pipeline"}, watermill: true},
	{pkg: "test/beside", may: nil},
	{pkg: "test/wasmtest", may: nil},
	{pkg: "internal/nearest", may: nil},
	{pkg: "test/expiring", may: nil},
	{pkg: "test/readertest", may: []string{"pipeline"}},
	{pkg: "test/testcert", may: nil},
	{pkg: "test/kafkatest", may: []string{"pipeline"}},
	{pkg: "internal/sinkdoc", may: nil},
	{pkg: "test/slackfake", may: nil},
	{pkg: "internal/reading", may: []string{"pipeline/flow", "internal/nearest", "pipeline", "pipeline/text", "pipeline/text/stemmers", "stages"}},
	{pkg: "internal/htmltree", may: nil},
	{pkg: "internal/memory", may: nil},
	{pkg: "internal/span", may: []string{"pipeline/flow"}},
	{pkg: "deploy", may: nil}, // tests of its files
	{pkg: "internal/stored", may: []string{"pipeline"}},
	{pkg: "internal/inflight", may: nil},
	{pkg: "test/recorded", may: nil},
	{pkg: "test/lists", may: nil},
	{pkg: "test/pictures", may: nil},
	{pkg: "test/noise", may: nil},    // tests only
	{pkg: "test/contract", may: nil}, // its tests use the root
	{pkg: "docs/examples", may: []string{"pipeline/flow", "pipeline"}},
	{pkg: "test/txtest", may: []string{"internal/engine", "pipeline/flow", "pipeline"}},
	{pkg: "docs/schemas", may: nil}, // files
	{pkg: "test/campaign", may: []string{"docs/schemas"}},
	{pkg: "test/campaign/stream", may: []string{"", "internal/cli", "pipeline/flow", "pipeline/local"}, watermill: true},
	{pkg: "test/day", may: nil},
	{pkg: "test/router", may: nil}, // tests only
	{pkg: "test/bench", may: nil},  // benchmarks only
	{pkg: "test/peers", may: nil},
	{pkg: "test/oracle", may: nil},
	{pkg: "test/chattest", may: []string{"pipeline", "pipeline/registry", "internal/render"}},
	{pkg: "test/sim", may: []string{"internal/delivery", "internal/engine", "pipeline/flow", "pipeline", "pipeline/text", "stages", "test/oracle", "test/txtest"}},
}

// prefixes whose listing in may covers everything below them.
var families = []string{"stages", "stages/fetch", "sinks", "sources"}

// leaves are the packages that end the program towards the world: each kind of sink, source and reader, the web page,
// Slack's commands, the REST API of the first server, the import of other programs' files. A leaf can be read, replaced
// or left out by itself, since it imports what a module of other authors may import, and leavesShare.
var leaves = regexp.MustCompile(`^((sinks|sources|stages/fetch/readers)/.+|internal/(web|slackapp|rest|migrate))$`)

// leavesShare is what leaves may import that other modules may not: the client for other hosts and the meaning of their
// answers, the layout of notifications, and the parser of HTML, since all that look at a page must refuse the same ones
// for their size. The web page stands on the API of its process.
func leavesShare(leaf, imp string) bool {
	return imp == "internal/outbound" || imp == "internal/render" || imp == "internal/htmltree" || leaf == "internal/web" && imp == "internal/manage"
}

func TestDirectionOfImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		pkg := strings.TrimPrefix(strings.TrimPrefix(fields[0], module), "/")
		isLeaf := leaves.MatchString(pkg)
		best := -1
		for i, d := range direction {
			if (pkg == d.pkg || d.pkg != "" && strings.HasPrefix(pkg, d.pkg+"/")) && (best < 0 || len(d.pkg) > len(direction[best].pkg)) {
				best = i
			}
		}
		if best < 0 && !isLeaf {
			t.Errorf("package %q has no place in the layout; give it one here and in the architecture", pkg)
			continue
		}
		rule := direction[max(best, 0)]
		if isLeaf {
			rule.watermill = strings.HasSuffix(pkg, "/watermill") || pkg == "sinks/kafka" // it publishes with watermill-kafka
		}
		wing := pkg == "test" || strings.HasPrefix(pkg, "test/") || pkg == "pipeline/pipelinetest"
		for _, imp := range fields[1:] {
			if strings.HasPrefix(imp, "github.com/ThreeDotsLabs/watermill") && !rule.watermill {
				t.Errorf("%s imports Watermill, which only the root and the transports know", pkg)
			}
			rest, ours := strings.CutPrefix(imp, module)
			if !wing && strings.HasPrefix(rest, "/test/") {
				t.Errorf("%s imports %s: production code must not import the proofs", fields[0], imp)
			}
			to := strings.TrimPrefix(rest, "/")
			if ours && isLeaf && (strings.Contains(rest, "/internal/") && !leavesShare(pkg, to)) || ours && !isLeaf && !allowed(rule.may, to) {
				t.Errorf("%s may not import %s", fields[0], imp)
			}
		}
	}
}

func allowed(may []string, pkg string) bool {
	if slices.Contains(may, pkg) {
		return true
	}
	if pkg == "pipeline/failure" || pkg == "pipeline/pageurl" { // they import nothing
		return slices.Contains(may, "pipeline")
	}
	for _, f := range families {
		if slices.Contains(may, f) && strings.HasPrefix(pkg, f+"/") {
			return true
		}
	}
	return false
}

// Stages do not import each other, though all of them stand in one family.
func TestStagesDoNotImportEachOther(t *testing.T) {
	for _, stage := range []string{"fetch", "index", "diff", "match"} {
		out, err := exec.Command("go", "list", "-deps", "./stages/"+stage).Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		for pkg := range strings.Lines(string(out)) {
			rest, ok := strings.CutPrefix(strings.TrimSpace(pkg), module+"/stages/")
			if ok && rest != stage && !strings.HasPrefix(rest, stage+"/") {
				t.Errorf("stages/%s depends on stages/%s", stage, rest)
			}
		}
	}
}

// weights say what programs may link that import some packages of this module: how many packages at most, all of Go's
// own counted, and none that begins with one of never. A program that needs more passes it as a value (ADR 45).
var weights = []struct {
	program string
	imports []string
	most    int
	never   []string
}{
	{"README's program", []string{".", "./pipeline", "./pipeline/registry", "./sinks/webhook"}, 534, slices.Concat(values, otherSinks)},
	{"a client of the API", []string{"./inspect/client"}, 246, slices.Concat(values, otherSinks, engine)},
	{"diff and match without a Router", []string{"./stages/diff", "./stages/match"}, 251, slices.Concat(values, otherSinks, storage)},
}

var (
	// values are what a program passes. Reflection on methods, as templates do it, keeps the linker from leaving out
	// what is not called.
	values = []string{
		"text/template", "html/template", "github.com/chromedp/", "github.com/yuin/goldmark", "github.com/tetratelabs/wazero",
		"github.com/blevesearch/snowballstem", "github.com/kljensen/snowball/french", module + "/sources/browser",
	}
	otherSinks = []string{"github.com/IBM/sarama", "github.com/slack-go/slack", "github.com/twmb/franz-go", "github.com/wneessen/go-mail"}
	storage    = []string{"github.com/cockroachdb/", "github.com/prometheus/", "github.com/getsentry/"}
	engine     = slices.Concat(storage, []string{module + "/stages", module + "/internal/engine", module + "/internal/delivery", module + "/sources"})
)

func TestWeights(t *testing.T) {
	for _, w := range weights {
		cmd := exec.Command("go", append([]string{"list", "-deps"}, w.imports...)...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux") // elsewhere there are some more or fewer
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		linked := strings.Fields(string(out))
		if len(linked) > w.most {
			t.Errorf("%s links %d packages, and %d are allowed", w.program, len(linked), w.most)
		}
		for _, pkg := range linked {
			if slices.ContainsFunc(w.never, func(prefix string) bool { return strings.HasPrefix(pkg, prefix) }) {
				t.Errorf("%s links %s", w.program, pkg)
			}
		}
	}
}
