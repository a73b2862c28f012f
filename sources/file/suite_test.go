package filesource

import (
	"path/filepath"
	"testing"

	"github.com/vokter/vokter/pipeline/pipelinetest"
)

func TestFetcherContract(t *testing.T) {
	pipelinetest.TestFetcher(t, func(t *testing.T) pipelinetest.FetcherSite {
		dir, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "page.txt")
		return pipelinetest.FetcherSite{
			Fetcher: New(Config{Allow: []string{dir}, MaxBody: 1000}), MaxBody: 1000, Missing: "file://" + dir + "/missing.txt",
			Put: func(t *testing.T, body string) string {
				writeFile(t, path, body)
				return "file://" + path
			},
		}
	})
}
