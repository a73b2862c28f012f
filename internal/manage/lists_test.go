package manage

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/inspect/client"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// putList sends a list and returns its report, one line an entry.
func putList(t *testing.T, base, query, body, token string) (status int, lines []string, raw string) {
	t.Helper()
	status, _, b := send(t, "PUT", base+client.Prefix+"/subscriptions?"+query, body, map[string]string{"Authorization": "Bearer " + token})
	var r flow.ApplyReport
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	for _, a := range r.Subscriptions {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%d %s %s %s", a.Entry, a.Client, a.Outcome, a.Reason)))
	}
	return status, lines, string(b)
}

// wantLines checks that each line begins with the one in want.
func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	ok := len(got) == len(want)
	for i := 0; ok && i < len(want); i++ {
		ok = strings.HasPrefix(got[i], want[i])
	}
	if !ok {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestListEntries: an entry that is no subscription, or none that the token may make, is refused alone.
func TestListEntries(t *testing.T) {
	base := tenants(t)
	const good = `{"url":"https://example.com/list","client":"a","keywords":["k"],"sinks":["sink-a"],"interval":"never"}`
	list := `[` + strings.Join([]string{
		good,
		`{"url":"https://example.com/list","client":"a","keyword":["k"],"sinks":["sink-a"]}`,
		`{"url":"https://example.com/list","client":"a","interval":5,"sinks":["sink-a"]}`,
		`{"url":"https://example.com/list","client":"a","client":"b","sinks":["sink-a"]}`,
		`7`,
		`{"url":"https://example.com/list","client":"b","keywords":["k"],"sinks":["sink-a"]}`,
		`{"url":"https://example.com/list","client":"a","keywords":["k"],"sinks":["sink-b"]}`,
		good,
	}, ",") + `]`
	status, lines, raw := putList(t, base, "origin=crm", list, "token of a")
	if status != 200 {
		t.Fatalf("got %d: %s", status, raw)
	}
	wantLines(t, lines, "1 a created", "2 a refused keyword: unexpected property", "3 a refused interval: ", "4 b refused client: is given twice", "5 default refused expected object",
		`6 b refused client: the token "a" may not`, `7 a refused sinks[0]: the token "a" may not`, "8 a refused client \"a\" already watches this document by subscription 1")
	// The owner's list of the same name has other clients, and the token does not touch them.
	_, lines, _ = putList(t, base, "origin=crm", strings.ReplaceAll(`[`+good+`,`+good+`]`, `"client":"a"`, `"client":"b"`), "token of a")
	wantLines(t, lines, "1 b refused", "2 b refused", "0 a removed")
	_, lines, _ = putList(t, base, "origin=crm", `[`+strings.ReplaceAll(good, `"client":"a"`, `"client":"b"`)+`]`, aToken)
	wantLines(t, lines, "1 b created")
	_, lines, _ = putList(t, base, "origin=crm&dry_run=true", `[]`, aToken)
	wantLines(t, lines, "0 b removed")
	_, lines, _ = putList(t, base, "origin=crm", `[]`, "token of a")
	wantLines(t, lines)
	_, lines, _ = putList(t, base, "origin=crm", ` [ ] `, aToken)
	wantLines(t, lines, "0 b removed")

	for _, c := range []struct {
		query, body string
		status      int
		want        string
	}{
		{"origin=crm", `{}`, 400, "no JSON list of subscriptions"},
		{"origin=crm", `[` + good, 400, "no JSON list of subscriptions"},
		{"origin=crm", `[] []`, 400, "there is more behind the list"},
		{"origin=crm", ``, 400, "body"},
		{"", `[]`, 422, "origin"},
		{"origin=a/b", `[]`, 422, "is no name of a list"},
	} {
		if status, _, raw := putList(t, base, c.query, c.body, aToken); status != c.status || !strings.Contains(raw, c.want) {
			t.Errorf("%s %.20s: got %d %.300s, want %d %q", c.query, c.body, status, raw, c.status, c.want)
		}
	}
}

// TestListQuota: a list takes no more than the quota of its token, whose other subscriptions count, too. What the list no
// longer has makes room.
func TestListQuota(t *testing.T) {
	s := new(shelf)
	base := serveURL(t, newAPIOf(t, s, config.API{Tokens: []config.Token{
		{Name: "acme", Hash: config.HashToken("acme"), Scopes: []config.Scope{config.ScopeRead, config.ScopeWrite}, Clients: []string{"acme"}, Quota: config.Quota{Subscriptions: 4, Hosts: 2}},
	}}))
	has := func(url, origin string) {
		sub := pipeline.Subscription{URL: url, Client: "acme", Keywords: []string{"k"}, Sinks: []string{"s"}}
		s.subs = append(s.subs, inspect.Subscription{Subscription: sub, Document: newClaim(sub).document, Origin: origin})
	}
	has("https://a.example.com/single", "api")
	has("https://a.example.com/1", "api/crm")
	has("https://a.example.com/gone", "api/crm")
	has("https://a.example.com/gone/2", "api/crm")
	apply := func(want []string, urls ...string) {
		t.Helper()
		var entries []string
		for _, u := range urls {
			if strings.HasPrefix(u, "{") {
				entries = append(entries, u)
				continue
			}
			entries = append(entries, fmt.Sprintf(`{"url":%q,"client":"acme","keywords":["new"],"sinks":["s"]}`, u))
		}
		_, lines, _ := putList(t, base, "origin=crm", "["+strings.Join(entries, ",")+"]", "acme")
		wantLines(t, lines, want...)
	}
	apply([]string{"1 acme created", `2 acme refused the token "acme" may watch pages of 2 hosts`, "3 acme created", "4 acme created", `5 acme refused the token "acme" may have 4 subscriptions`},
		"https://b.example.com/", "https://c.example.com/", "https://a.example.com/2", "https://a.example.com/1", "https://a.example.com/3")
	apply([]string{"1 acme created", "2 acme created", "3 acme created", "4 acme refused"},
		"https://a.example.com/4", "https://a.example.com/5", "https://a.example.com/6", "https://a.example.com/7")
	// What a refused entry spares takes its place.
	apply([]string{"1 acme refused", "2 acme created", "3 acme created", "4 acme refused"},
		`{"url":"https://a.example.com/gone","client":"acme","keyword":"k"}`, "https://a.example.com/8", "https://a.example.com/9", "https://a.example.com/10")
}
