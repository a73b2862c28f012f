package kafka

import "github.com/IBM/sarama"

// ConsumerGroup returns the configuration of a consumer group that reads topics which are not
// the transport's, with the connection settings of c, from the oldest record on and without
// what was never committed. It fails where a file that c.TLS names cannot be read.
func (c Config) ConsumerGroup() (*sarama.Config, error) {
	conf, err := c.withDefaults().groupConfig()
	if err != nil {
		return nil, err
	}
	// Whoever starts the source again after a pause tells what is wrong.
	conf.Metadata.Retry.Max = 10
	conf.Consumer.Return.Errors = false
	return conf, nil
}
