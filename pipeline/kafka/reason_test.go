package kafka

import (
	"fmt"
	"testing"

	"github.com/IBM/sarama"
	"github.com/vokter/vokter/test/kafkatest"
)

func TestPlainNamesWhatToMend(t *testing.T) {
	c := Config{InstanceID: "one", Group: "vokter"}
	for err, want := range map[error]string{
		sarama.ErrFencedInstancedId:                  "another process has the same instance_id (one)",
		sarama.ErrTransactionalIDAuthorizationFailed: "allow Write on the transactional IDs that begin with vokter-",
	} {
		kafkatest.Mention(t, c.cause(fmt.Errorf("joining: %w", err)), want)
	}
}
