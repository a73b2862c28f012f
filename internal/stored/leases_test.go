package stored

import "testing"

// wantFound checks which work of "k" is found in an epoch.
func wantFound(t *testing.T, table *Leases[int, string], epoch uint64, ids ...int) {
	t.Helper()
	for id := range 10 {
		wanted := false
		for _, w := range ids {
			wanted = wanted || w == id
		}
		if l, ok := table.Find("k", id, epoch); ok != wanted || ok && l.ID != id {
			t.Errorf("in epoch %d work %d is found: %v (%+v), want %v", epoch, id, ok, l, wanted)
		}
	}
}

func TestBegunWorkIsFoundBeforeItsCommit(t *testing.T) {
	var table Leases[int, string]
	wantFound(t, &table, 0)
	table.Begin("k", 1, 0, "one")
	wantFound(t, &table, 0, 1)
	if l, ok := table.Committed("k"); ok {
		t.Errorf("before the commit the table has %+v", l)
	}
	table.Commit("k", 1)
	if l, ok := table.Committed("k"); !ok || l.ID != 1 || l.Value != "one" {
		t.Errorf("after the commit the table has %+v, %v", l, ok)
	}
	wantFound(t, &table, 0, 1)
	table.Commit("k", 1) // a message that does not touch the work
	wantFound(t, &table, 0, 1)
	table.End("k")
	wantFound(t, &table, 0)
	if table.Len() != 0 {
		t.Errorf("after the end %d keys remain", table.Len())
	}
}

func TestAnUndoneTransactionLeavesTheCommittedLease(t *testing.T) {
	var table Leases[int, string]
	table.Begin("k", 1, 0, "one")
	table.Commit("k", 1)
	table.Begin("k", 2, 0, "undone")
	table.Commit("k", 1)
	wantFound(t, &table, 0, 1, 2)
	table.Begin("k", 2, 0, "two")
	table.Commit("k", 2)
	wantFound(t, &table, 0, 2)
	if l, _ := table.Committed("k"); l.Value != "two" {
		t.Errorf("committed is %+v, want what the repeated transaction began", l)
	}
}

func TestOneCommitCoversSeveralMessages(t *testing.T) {
	var table Leases[int, string]
	table.Begin("k", 1, 0, "one")
	table.Commit("k", 1)
	// The first message ends work 1 and begins 2, the second replaces 2 by 3.
	table.Begin("k", 2, 0, "two")
	wantFound(t, &table, 0, 1, 2)
	table.Begin("k", 3, 0, "three")
	wantFound(t, &table, 0, 1, 3)
	table.End("k")
	wantFound(t, &table, 0, 3)
	table.Commit("k", 2)
	wantFound(t, &table, 0, 3)
	table.Commit("k", 3)
	wantFound(t, &table, 0, 3)
	if l, _ := table.Committed("k"); l.Value != "three" {
		t.Errorf("committed is %+v, want 3", l)
	}
}

func TestWorkIsVoidInAnotherEpoch(t *testing.T) {
	var table Leases[int, string]
	table.Begin("k", 1, 7, "one")
	wantFound(t, &table, 7, 1)
	wantFound(t, &table, 8) // undone: another process had the key since
	table.Commit("k", 1)
	wantFound(t, &table, 7, 1)
	wantFound(t, &table, 8)
}

func TestKeysOfOtherProcessesAreForgotten(t *testing.T) {
	var table Leases[int, string]
	table.Commit("elsewhere", 1) // begun by another process
	for _, key := range []string{"k", "other", "undone"} {
		table.Begin(key, 1, 0, key)
	}
	table.Commit("k", 1)
	table.Commit("other", 1)
	keys := func() (keys int) {
		table.Each(func(key string, l Lease[int, string]) {
			if keys++; l.Value != key {
				t.Errorf("%s has %+v", key, l)
			}
		})
		return keys
	}
	if keys() != 2 || table.Len() != 3 {
		t.Errorf("got %d committed leases and %d keys, want 2 and 3", keys(), table.Len())
	}
	table.Keep(func(key string) bool { return key == "k" })
	if keys() != 1 || table.Len() != 1 {
		t.Errorf("got %d committed leases and %d keys, want one that is owned", keys(), table.Len())
	}
}
