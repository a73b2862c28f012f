package pipelinetest

import (
	"strings"

	"github.com/vokter/vokter/pipeline/flow"
)

// Stranger is a record that another program may write to a topic with flow.OthersWrite.
type Stranger struct {
	Name    string
	Key     string
	Headers map[string]string
	Body    []byte
	// Unhandled says that the record becomes a dead letter in each such topic. The result of
	// the others depends on the topic: an invalid command is answered, for example.
	Unhandled bool
}

// Strangers returns records that no stage can handle, with headers of this module. None of them
// may stop a process. page is the URL of a watched page.
func Strangers(page string) []Stranger {
	long := strings.Repeat("x\xff", 512<<10)
	var all []Stranger
	add := func(name string, unhandled bool, body string, headers ...string) *Stranger {
		h := map[string]string{
			"ce_id": "stranger-" + name, "ce_type": "evil.v1", "ce_source": flow.SourceVokter, "ce_specversion": "1.0",
			"ce_subject": page, "ce_time": "2026-11-22T10:00:00Z", "content-type": "text/html",
		}
		for i := 0; i < len(headers); i += 2 {
			if h[headers[i]] = headers[i+1]; headers[i+1] == "" {
				delete(h, headers[i])
			}
		}
		all = append(all, Stranger{name, page, h, []byte(body), unhandled})
		return &all[len(all)-1]
	}
	add("unknown type", true, "x")
	add("another source", true, "x", "ce_source", "https://evil.example/")
	add("no source", true, "x", "ce_source", "")
	add("newer version", true, "{}", "ce_type", "vokter.subscribe.v9")
	add("empty body", true, "")
	add("no ID", true, "x", "ce_id", "")
	add("control characters", true, "\x00", "ce_type", "\x1b[2J\x00\r\n", "ce_subject", "\x00")
	add("not UTF-8", true, "\xff\xfe", "ce_type", "\xff\xfe", "x-\xff", "\xff")
	add("long type", true, "x", "ce_type", long)
	add("long ID", true, "x", "ce_id", long)
	add("long subject", true, "x", "ce_subject", "https://example.com/"+long)
	add("long header", true, "x", "x-long", long)
	add("long trace", true, "x", flow.HeaderTrace, long+long+long)
	add("long body", true, long)
	add("no key", true, "x").Key = ""
	add("long key", true, "x").Key = "https://example.com/" + long
	add("key that is not UTF-8", true, "x").Key = "\xff\x00"
	add("bad time", true, "x", "ce_type", flow.TypePage, "ce_time", "yesterday")
	add("time after the year 9999", true, "x", "ce_type", flow.TypePage, "ce_time", "9999-12-31T23:59:59-23:59")
	add("time before the year 0", true, "x", "ce_type", flow.TypePage, "ce_time", "0000-01-01T00:00:00+23:59")
	add("a wake", true, "", "ce_type", flow.TypeWake)
	// What belongs to other topics.
	for _, typ := range []string{
		flow.TypeRequest, flow.TypeSnapshot, flow.TypeEnded, flow.TypeChange, flow.TypeStamp,
		flow.TypeAddressed, flow.TypeWithdraw, flow.TypeHealth, flow.TypeDecision, flow.TypeSweep,
	} {
		add(typ, true, `{"page":"`+page+`","url":"`+page+`"}`, "ce_type", typ)
	}
	// What one of the topics knows, and cannot read.
	for _, typ := range []string{
		flow.TypeSubscribe, flow.TypeCancel, flow.TypeApply, flow.TypeResume, flow.TypeExpire,
		flow.TypeOutcome, flow.TypePushed, flow.TypeDeadLetter, flow.TypeReplay,
	} {
		for name, body := range map[string]string{
			"half": "{", "null": "null", "list": "[]", "number": "1e999", "nested": strings.Repeat("[", 20_000),
			"wrong types": `{"url":7,"subscription":[],"filter":"x","time":{},"reason":[]}`,
		} {
			add(typ+" "+name, false, body, "ce_type", typ)
		}
	}
	for name, header := range map[string]string{
		"null": "null", "kinds": `{"kind":"none","parts":-1,"part":9}`, "huge": `{"page":"` + page + `","kind":"read","parts":9223372036854775807}`,
		"frames": `{"frames":{"packed":-1,"body_size":9223372036854775807,"body":{}}}`, "time": `{"time":"9999-12-31T23:59:59-23:59"}`,
	} {
		add("outcome "+name, false, "x", "ce_type", flow.TypeOutcome, "vokter_outcome", header)
		add("pushed "+name, false, "x", "ce_type", flow.TypePushed, "vokter_pushed", header)
	}
	add("letter to nobody", false, `{"reason":"","addressed":{}}`, "ce_type", flow.TypeDeadLetter)
	add("letter of no time", false, `{"time":"9999-12-31T23:59:59-23:59","group":"\u0000"}`, "ce_type", flow.TypeDeadLetter)
	return append(all, Stranger{Name: "nothing at all"})
}
