package flow

// Gauge is a figure about a process for those who watch over it. Who has some to offer has
// a method Gauges() []Gauge, which returns them as they are now, from any goroutine, without
// asking anybody outside the process.
type Gauge struct {
	// Name is one of the constants below, or another that begins with vokter_; with _total
	// at its end the value only grows while the process lives.
	Name string
	// Help is a sentence about what it says.
	Help string
	// Labels tell figures of one name from each other. All of one name have the same labels.
	Labels map[string]string
	Value  float64
}

// Gauges of a transport whose lanes are shared with other processes.
const (
	// GaugeLanes is how many lanes there are, in all processes together.
	GaugeLanes = "vokter_lanes"
	// GaugeLanesOwned is how many lanes this process owns, GaugeLanesRestoring how many of
	// them it does not handle messages of yet, since it reads their state.
	GaugeLanesOwned     = "vokter_lanes_owned"
	GaugeLanesRestoring = "vokter_lanes_restoring"
	// GaugeRestored is how many records of state were read to restore lanes.
	GaugeRestored = "vokter_restored_records_total"
	// GaugeLag is how far a group is behind the end of a topic, in the lanes that this process
	// owns: with the labels group and topic. It is an upper bound, since ends have gaps.
	GaugeLag = "vokter_lag"
	// GaugeTransactions is how many transactions were committed, GaugeTransactionsFailed how
	// many were given up, each with the messages in it, which are handled again.
	GaugeTransactions       = "vokter_transactions_total"
	GaugeTransactionsFailed = "vokter_transactions_failed_total"
)
