package kafka

import (
	"regexp"
	"testing"

	"github.com/IBM/sarama"
)

// encodeAssignment is what a member of a consumer group is assigned, as Kafka encodes it.
func encodeAssignment(topic string, partitions ...int32) []byte {
	var r sarama.SyncGroupRequest
	_ = r.AddGroupAssignmentMember("m", &sarama.ConsumerGroupMemberAssignment{Topics: map[string][]int32{topic: partitions}}) // it fits
	return r.GroupAssignments[0].Assignment
}

func TestOwner(t *testing.T) {
	name := "web-2"
	groups := []*sarama.GroupDescription{{Members: map[string]*sarama.GroupMemberDescription{
		"a": {ClientId: "vokter-one-17", ClientHost: "/10.0.0.1", MemberAssignment: encodeAssignment("lanes", 0, 2)},
		"b": {ClientId: "vokter-two-18", ClientHost: "/10.0.0.2", GroupInstanceId: &name, MemberAssignment: encodeAssignment("lanes", 1)},
		"c": {ClientId: "vokter-three-19", ClientHost: "/10.0.0.3"},
	}}}
	for partition, want := range map[int32]string{2: "vokter-one-17 at 10.0.0.1", 1: "web-2, vokter-two-18 at 10.0.0.2", 3: ""} {
		if got := ownerOf(groups, "lanes", partition); got != want {
			t.Errorf("partition %d: got %q, want %q", partition, got, want)
		}
	}
	if got := ownerOf(groups, "other", 0); got != "" {
		t.Errorf("another topic: got %q", got)
	}
	if got := memberClientID(); !regexp.MustCompile(`^vokter-[A-Za-z0-9._-]+-[0-9]+$`).MatchString(got) {
		t.Errorf("the name of the process is %q", got)
	}
}
