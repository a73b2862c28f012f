package kafka

import (
	"strings"
	"testing"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/cluster"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/test/kafkatest"
)

// TestMissingRights withholds one right after the other: Ready and one line of the log name
// it, and the Transport goes on by itself once it is given.
func TestMissingRights(t *testing.T) {
	for name, test := range map[string]struct {
		without sarama.Acl
		on      sarama.Resource
		want    string
	}{
		"reading one topic": {
			sarama.Acl{Operation: sarama.AclOperationRead},
			sarama.Resource{ResourceType: sarama.AclResourceTopic, ResourceName: "p.snapshots"},
			"allow Read on the topic p.snapshots",
		},
		"reading the state": {
			sarama.Acl{Operation: sarama.AclOperationRead},
			sarama.Resource{ResourceType: sarama.AclResourceTopic, ResourceName: "p.state"},
			"allow Read on the topic p.state",
		},
		"writing": {
			sarama.Acl{Operation: sarama.AclOperationWrite},
			sarama.Resource{ResourceType: sarama.AclResourceTopic, ResourceName: "p.snapshots"},
			"allow Write on the topic p.snapshots",
		},
		"the group": {
			sarama.Acl{Operation: sarama.AclOperationRead},
			sarama.Resource{ResourceType: sarama.AclResourceGroup, ResourceName: "p"},
			"allow Read on the group p",
		},
		"the transactional IDs": {
			sarama.Acl{Operation: sarama.AclOperationAll},
			sarama.Resource{ResourceType: sarama.AclResourceTransactionalID, ResourceName: "p-0"},
			"allow Write on the transactional IDs that begin with p-",
		},
		"seeing the group": {
			sarama.Acl{Operation: sarama.AclOperationDescribe},
			sarama.Resource{ResourceType: sarama.AclResourceGroup, ResourceName: "p"},
			"allow Read on the group p",
		},
	} {
		t.Run(name, func(t *testing.T) {
			brokers := kafkatest.Start(t, kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "admin", "secret"),
				kfake.User("PLAIN", "vokter", "secret", needed()...))
			c := Config{Brokers: brokers, Prefix: "p.", Lanes: 2, SASL: cluster.SASL{Mechanism: "PLAIN", User: "admin", Password: registry.NewSecret("secret")}}.withDefaults()
			admin := testAdmin(t, c)
			test.without.Principal, test.without.Host, test.without.PermissionType = "User:vokter", "*", sarama.AclPermissionDeny
			test.on.ResourcePatternType = sarama.AclPatternLiteral
			if err := admin.CreateACLs([]*sarama.ResourceAcls{{Resource: test.on, Acls: []*sarama.Acl{&test.without}}}); err != nil {
				t.Fatal(err)
			}
			var logged kafkatest.Log
			c.SASL.User, c.Logger = "vokter", logged.Logger()
			c.Topics = map[string]flow.Topic{"snapshots": {Groups: []string{"g"}}, "health": {}}
			tr, err := Open(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			defer tr.Close()
			tr.checkRights()
			tr.checkRights() // it is told once
			err = tr.Ready()
			if err == nil {
				t.Fatalf("it is ready without %s", test.want)
			}
			kafkatest.Mention(t, err.Error(), test.want)
			if n := strings.Count(logged.String(), "rights are missing"); n != 1 {
				t.Errorf("%d lines about it, want 1: %s", n, logged.String())
			}
			lines, err := Check(t.Context(), c, c.Topics)
			if told := strings.Contains(strings.Join(lines, " "), test.want); err != nil || told != (test.on.ResourceType == sarama.AclResourceTopic) {
				t.Errorf("Check: %q, %v, want topics named", lines, err)
			}
			name := test.on.ResourceName
			_, err = admin.DeleteACL(sarama.AclFilter{
				ResourceType: test.on.ResourceType, ResourceName: &name, ResourcePatternTypeFilter: sarama.AclPatternLiteral,
				Operation: test.without.Operation, PermissionType: sarama.AclPermissionDeny,
			}, false)
			if err != nil {
				t.Fatal(err)
			}
			tr.checkRights()
			kafkatest.Mention(t, logged.String(), "the rights are there that were missing")
			<-tr.Gained()
		})
	}
}

// needed are the rights that the guide of operation lists.
func needed() []kfake.ACL {
	var all []kfake.ACL
	give := func(resource kmsg.ACLResourceType, name string, ops ...kmsg.ACLOperation) {
		for _, op := range ops {
			all = append(all, kfake.ACL{Resource: resource, Name: name, Pattern: kmsg.ACLResourcePatternTypePrefixed, Operation: op, Allow: true})
		}
	}
	give(kmsg.ACLResourceTypeTopic, "p.", kmsg.ACLOperationRead, kmsg.ACLOperationWrite, kmsg.ACLOperationDescribeConfigs, kmsg.ACLOperationCreate)
	give(kmsg.ACLResourceTypeGroup, "p", kmsg.ACLOperationRead)
	give(kmsg.ACLResourceTypeTransactionalId, "p-", kmsg.ACLOperationWrite)
	return all
}
