package client

import (
	"math"
	"testing"
)

// The hashes are those of UtilsTest.testMurmur2 in Kafka's own tests, and that of no bytes.
func TestPartitionOf(t *testing.T) {
	for key, hash := range map[string]int32{
		"21":                         -973932308,
		"foobar":                     -790332482,
		"a-little-bit-long-string":   -985981536,
		"a-little-bit-longer-string": -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc": 479470107,
		"":    275646681,
	} {
		for _, lanes := range []int{1, 3, 32, math.MaxInt32} {
			if got, want := PartitionOf(key, lanes), int(hash&0x7fffffff)%lanes; got != want {
				t.Errorf("PartitionOf(%q, %d): got %d, want %d", key, lanes, got, want)
			}
		}
	}
}
