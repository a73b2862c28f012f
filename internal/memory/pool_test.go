package memory

import (
	"sync"
	"testing"
	"testing/synctest"
)

func TestPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(2)
		var mu sync.Mutex
		ran := 0
		hold := make(chan struct{})
		for range 5 { // all at once, though only two are kept
			p.Go(func() {
				mu.Lock()
				ran++
				mu.Unlock()
				<-hold
			})
		}
		synctest.Wait()
		if ran != 5 {
			t.Errorf("%d of 5 functions run while none has ended", ran)
		}
		close(hold)
		synctest.Wait()
		if got := p.idle.Load(); got != 2 {
			t.Errorf("%d goroutines wait, want 2", got)
		}
		for range 10 {
			p.Go(func() { ran++ })
			synctest.Wait()
		}
		if ran != 15 {
			t.Errorf("%d functions ran, want 15", ran)
		}
		p.Close()
		synctest.Wait()
		p.Go(func() { ran++ })
		synctest.Wait() // the bubble fails where a goroutine is left over
		if ran != 16 {
			t.Error("a function was lost after Close")
		}
	})
}
