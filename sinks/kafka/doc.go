// Package kafka is the sink that writes notifications to a topic of the operator's own: one
// record for each, whose value is the documented JSON and whose headers are those of a
// CloudEvent (https://cloudevents.io) in the binary mode of its Kafka protocol binding. The
// cluster has nothing to do with the pipeline's transport, which may be the local one. It may
// be in any network: what limits the networks of other sinks does not limit its brokers.
//
// The headers are ce_id (the ID of the notification), ce_type (vokter.notification.v1,
// vokter.digest.v1 or vokter.health.v1), ce_source, ce_subject (the page, if it is about one),
// ce_time, ce_specversion and content-type.
//
// A notification is delivered once all in-sync replicas have it. The producer is idempotent
// and batches what is delivered at the same time; a notification that is tried again is a
// record with the same ce_id, which consumers drop. Where the brokers refuse what came together
// as too large, each record of it is written once more, alone. It connects with the first notification,
// and anew after a failure.
package kafka
