package migrate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestApprise(t *testing.T) {
	for raw, want := range map[string]string{
		"mailto://ann:pass%21@gmail.com":                                           "email from=ann@gmail.com host=smtp.gmail.com password=pass! to=ann@gmail.com username=ann@gmail.com",
		"mailtos://ann:p@mail.example.com:587?to=bob@x.org,eve@y.org&from=w@z.com": "email from=w@z.com host=mail.example.com password=p port=587 to=bob@x.org|eve@y.org username=ann",
		"mailto://u:p@mail.example.com":                                            "email from=u@mail.example.com host=mail.example.com password=p to=u@mail.example.com username=u",
		"mailto://localhost:2525?from=a@b.c&to=d@e.f":                              "email from=a@b.c host=localhost port=2525 tls=none to=d@e.f",
		"mailtos://u:p@example.com/x@y.z?smtp=out.example.com&mode=ssl":            "email from=u@example.com host=out.example.com password=p tls=implicit to=x@y.z username=u",
		"discord://123/AbC-x":                                                      "discord webhook_url=https://discord.com/api/webhooks/123/AbC-x",
		"slack://bot@T1/B2/C3/#general":                                            "slack webhook_url=https://hooks.slack.com/services/T1/B2/C3",
		"slack://xoxb-12-34/%23legal":                                              "slack channel=#legal token=xoxb-12-34",
		"tgram://123:AbC/-100:7":                                                   "telegram chat_id=-100 message_thread_id=7 token=123:AbC",
		"ntfy://topic":                                                             "ntfy url=https://ntfy.sh/topic",
		"ntfys://tk_x@ntfy.example.com:8443/news":                                  "ntfy token=tk_x url=https://ntfy.example.com:8443/news",
		"ntfy://u:p@host/news":                                                     "ntfy password=p url=http://host/news username=u",
		"gotifys://host/sub/tok":                                                   "gotify token=tok url=https://host/sub",
		"mmosts://host/key?channel=town":                                           "mattermost channel=town webhook_url=https://host/hooks/key",
		"jsons://u:p@host:1/in/x":                                                  "webhook headers=Authorization: Basic dTpw url=https://host:1/in/x",
	} {
		kind, options, err := Apprise(raw)
		var got strings.Builder
		got.WriteString(kind)
		for _, name := range slices.Sorted(maps.Keys(options)) {
			if options[name] != "" {
				fmt.Fprintf(&got, " %s=%s", name, strings.ReplaceAll(options[name], "\n", "|"))
			}
		}
		if err != nil || got.String() != want {
			t.Errorf("%s: got %s, %v, want %s", raw, got.String(), err, want)
		}
	}
	if _, _, err := Apprise("pover://user@token"); !errors.Is(err, ErrNoSink) {
		t.Errorf("another service: got %v", err)
	}
	for _, raw := range []string{"", "mailto", "json://", "gotify://host", "json://host/%zz",
		// What is not understood is not left out in silence.
		"json://host/a?+X-Token=abc", "json://host/a?method=PUT", "tgram://1:A/11/22", "ntfys://host/a/b", "mmost://host/sub/key",
		"discord://1/tok?thread=5", "discord://1", "ntfy://host/t?priority=high", "json://host/a, json://host/b", "slack://xoxb-1/a/b",
	} {
		if _, _, err := Apprise(raw); err == nil || errors.Is(err, ErrNoSink) {
			t.Errorf("%q: got %v", raw, err)
		}
	}
}
