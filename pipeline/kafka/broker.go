package kafka

import (
	"github.com/IBM/sarama"
)

// The levels of the feature metadata.version that brokers of 4.2 and 4.3 support at most.
const (
	feature    = "metadata.version"
	feature4_2 = 28
	feature4_3 = 30
)

// brokerWarning warns of a broker that can lose parts of transactions when it is killed
// (KAFKA-20734), which matters where alone: topics stand in one broker only. One that does
// not say what it is gets no warning.
func brokerWarning(admin sarama.ClusterAdmin, alone bool) []string {
	if !alone {
		return nil
	}
	b, err := admin.Controller()
	if err != nil {
		return nil
	}
	versions, err := b.ApiVersions(&sarama.ApiVersionsRequest{Version: 3, ClientSoftwareName: clientID, ClientSoftwareVersion: "1"})
	if err != nil {
		return nil
	}
	for _, f := range versions.SupportedFeatures {
		if f.Name == feature && affected(f.MaxVersion) {
			return []string{"topics are kept in one broker only, and the broker is a Kafka of 4.2 or 4.3, which can lose half of a transaction when it is killed (KAFKA-20734); use replication 3, or 4.1"}
		}
	}
	return nil
}

// affected reports whether a broker that supports level at most has the bug.
func affected(level int16) bool { return level >= feature4_2 && level <= feature4_3 }

// single reports whether one of the topics stands in one broker only.
func single(have map[string]standing) bool {
	for _, s := range have {
		if s.replicas == 1 {
			return true
		}
	}
	return false
}
