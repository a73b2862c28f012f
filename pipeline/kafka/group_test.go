package kafka

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/vokter/vokter/test/kafkatest"
)

// TestLeave closes a transport whose request to leave the consumer group fails the first time: it
// asks again and is no member afterwards. A refusal that lasts is logged.
func TestLeave(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		code  int16 // the answer; 0 breaks the connection instead
		times int32
		want  string // in the log; empty: no warning, and no member is left
	}{
		"broken connection":      {times: 1},
		"coordinator is moving":  {code: kerr.NotCoordinator.Code, times: 1},
		"coordinator is loading": {code: kerr.CoordinatorLoadInProgress.Code, times: 2},
		"refused":                {code: kerr.GroupAuthorizationFailed.Code, times: 1000, want: "leaving the consumer group failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := kafkatest.Cluster(t)
			var logged kafkatest.Log
			c := testConfig(cluster.ListenAddrs())
			c.Logger = logged.Logger()
			tr := openTransport(t, c)
			<-tr.Gained()
			var asked atomic.Int32
			cluster.ControlKey(int16(kmsg.LeaveGroup), func(req kmsg.Request) (kmsg.Response, error, bool) {
				cluster.KeepControl()
				if asked.Add(1) > test.times {
					return nil, nil, false
				}
				if test.code == 0 {
					return nil, errors.New("broken"), true
				}
				resp := req.ResponseKind().(*kmsg.LeaveGroupResponse)
				resp.ErrorCode = test.code
				return resp, nil, true
			})
			mustClose(t, tr)
			if test.want != "" {
				kafkatest.Mention(t, logged.String(), test.want)
				return
			}
			if n := asked.Load(); n < 2 {
				t.Errorf("the brokers were asked %d times", n)
			}
			groups, err := kafkatest.Admin(t, c.Brokers).DescribeConsumerGroups([]string{c.Group})
			if err != nil || len(groups) != 1 {
				t.Fatal(groups, err)
			}
			if n := len(groups[0].Members); n != 0 {
				t.Errorf("the group has %d members, want none: %s", n, logged.String())
			}
		})
	}
}
