package delivery

import (
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// TestSeverityOfAGroup: a group has the highest severity in it, and one channel.
func TestSeverityOfAGroup(t *testing.T) {
	k := newDeliveryFixture(t)
	k.setReceiving(pipeline.Receiving{GroupBy: []string{pipeline.GroupByHost}})
	for i, n := range []struct{ severity, channel string }{{"info", ""}, {"critical", ""}, {"", ""}, {"warning", "#legal"}, {"warning", "#legal"}} {
		a, err := bodyOf(k.pageNotification("https://example.com/"+string(rune('a'+i)), "c"))
		if err != nil {
			t.Fatal(err)
		}
		a.Notification.Severity, a.Notification.Channel = n.severity, n.channel
		m, err := a.Message()
		if err != nil {
			t.Fatal(err)
		}
		k.handle(m)
	}
	k.tick(time.Minute)
	var groups []pipeline.Notification
	for len(k.attempts) > 0 {
		a := k.attempts[0]
		k.attempts = k.attempts[1:]
		groups = append(groups, a.Notifications...)
		k.handle(a.Result(nil))
	}
	if len(groups) != 2 {
		t.Fatalf("%d groups, want one for each channel", len(groups))
	}
	for _, n := range groups {
		switch {
		case n.Channel == "" && n.Severity == "critical" && len(n.Items) == 3 && n.Items[0].Severity == "info":
		case n.Channel == "#legal" && n.Severity == "warning" && len(n.Items) == 2:
		default:
			t.Errorf("got %+v", n)
		}
	}
}
