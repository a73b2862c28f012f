package cli

import (
	"os"
	"strings"
	"testing"
)

// TestApply applies a list to a directory that no process runs, and to one that a process runs.
func TestApply(t *testing.T) {
	t.Parallel()
	s := newTestSetup(t, "listen: 127.0.0.1:0\n")
	entry := func(path, more string) string {
		return `{"url":"` + s.page.URL + path + `","client":"crm","keywords":["k"],"interval":"never","sinks":["out"]` + more + `}`
	}
	list := file(t, "list.json", "["+entry("/a", "")+","+entry("/b", "")+"]")
	expectExit(t, 2, "name the list with --origin NAME", "apply", list, "-c", s.config)
	expectExit(t, 2, "no LIST is given", "apply", "--origin", "crm", "-c", s.config)
	expectExit(t, 2, "nope.json", "apply", "nope.json", "--origin", "crm", "-c", s.config)
	expectExit(t, 0, "crm, not applied: 2 created, 0 changed, 0 unchanged, 0 removed, 0 refused", "apply", list, "--origin", "crm", "--dry-run", "-c", s.config)
	expectExit(t, 0, "crm: 2 created, 0 changed, 0 unchanged, 0 removed, 0 refused", "apply", list, "--origin", "crm", "-c", s.config)
	unknown := file(t, "unknown.json", "["+strings.ReplaceAll(entry("/a", ""), `"out"`, `"outt"`)+"]")
	expectExit(t, 2, unknown+`: no sink is named "outt"; did you mean "out"?`, "apply", unknown, "--origin", "crm", "-c", s.config)

	run := start(t, "run", "-c", s.config, "--allow", loopback)
	run.awaitAddress(t, s.data)
	expectExit(t, 0, "made by the list crm", "list", "-v", "--data", s.data)
	if err := os.WriteFile(list, []byte("["+entry("/a", `,"stem":true`)+","+entry("/c", `,"stemm":true`)+"]"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := runCLI(t, "apply", list, "--origin", "crm", "--data", s.data)
	if r.code != 1 || !strings.Contains(r.stdout, "refused  2") || !strings.Contains(r.stdout, "stemm: unexpected property") ||
		!strings.HasSuffix(r.stdout, "crm: 0 created, 1 changed, 0 unchanged, 1 removed, 1 refused\n") || !strings.Contains(r.stderr, "1 subscription refused") {
		t.Errorf("got %+v", r)
	}
	exported := runCLI(t, "export", "--client", "crm", "--data", s.data)
	found := objects(t, runCLI(t, "apply", file(t, "list.yaml", exported.stdout), "--origin", "crm", "--data", s.data, "--format", "json"))
	if len(found["subscription"]) != 1 || found["subscription"][0]["outcome"] != "unchanged" || found["applied"][0]["unchanged"] != 1.0 {
		t.Errorf("got %v of what was exported", found)
	}
	expectExit(t, 2, "no_such_key", "apply", file(t, "wrong.yaml", "no_such_key: 1\n"), "--origin", "crm", "--data", s.data)
	expectExit(t, 0, "crm: 0 created, 0 changed, 0 unchanged, 1 removed, 0 refused", "apply", file(t, "empty.json", "[]"), "--origin", "crm", "--data", s.data)
}
